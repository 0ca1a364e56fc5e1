"""When a topology's parallelism last changed: measurements across a change must not cause the next one."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from barograph.model import Cycle, Snapshot


@dataclass(frozen=True, slots=True)
class SinceChange:
    """How long the parallelism has been unchanged; both infinite if no change is known.

    seconds: since the change took effect. A slow change makes its own cycle long, so this is not cycles x length.
    cycles: cycles that ended since the change was ordered, the present one included.
    """

    seconds: float = inf
    cycles: float = inf


def since_change(
    history: Sequence[Cycle], now: Snapshot, topology: str, *, seconds: float = inf, cycles: float = inf
) -> SinceChange:
    """A change counts from its order, unless it was refused. Manual changes count too.

    A change takes effect when it is committed; if the engine does not say when, at its order. A change without an order
    takes effect at the first snapshot that shows it.
    seconds, cycles: the search stops at changes longer ago than one of these.
    """
    present = _degrees(now, topology)
    shown_s = now.at_s
    for age, cycle in enumerate(reversed(history), start=1):
        if age > cycles or now.at_s - shown_s > seconds:
            break
        ordered_s = cycle.snapshot.at_s
        if _ordered(cycle, topology):
            took_s = cycle.outcome.order_to_commit_s if cycle.outcome is not None else None
            return SinceChange(now.at_s - ordered_s - (took_s or 0.0), age)
        if _degrees(cycle.snapshot, topology) not in ({}, present):
            return SinceChange(now.at_s - shown_s, age)
        shown_s = ordered_s
    return SinceChange()


def _ordered(cycle: Cycle, topology: str) -> bool:
    accepted = cycle.outcome is None or cycle.outcome.ok
    return accepted and any(r.topology == topology for r in cycle.plan.rescales)


def _degrees(snapshot: Snapshot, topology: str) -> dict[str, int]:
    if not snapshot.runs(topology):
        return {}
    return {o.name: o.parallelism for o in snapshot.topology(topology).operators}
