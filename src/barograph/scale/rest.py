"""When a topology's parallelism last changed: measurements across a change must not cause the next one."""

from collections.abc import Sequence
from math import inf

from barograph.model import Cycle, Snapshot


def since_change_s(history: Sequence[Cycle], now: Snapshot, topology: str, within_s: float = inf) -> float:
    """Seconds since a change of its parallelism took effect; infinite if no change is known. Manual changes count too,
    orders that were refused or left out do not.

    A change takes effect when it is committed; if the engine does not say when, at its order. A change without an order
    takes effect at the first snapshot that shows it.
    within_s: the search stops at changes longer ago.
    """
    present = _degrees(now, topology)
    shown_s = now.at_s
    for cycle in reversed(history):
        if now.at_s - shown_s > within_s:
            break
        ordered_s = cycle.snapshot.at_s
        if _ordered(cycle, topology):
            took_s = cycle.outcome.order_to_commit_s if cycle.outcome is not None else None
            return now.at_s - ordered_s - (took_s or 0.0)
        if _degrees(cycle.snapshot, topology) not in ({}, present):
            return now.at_s - shown_s
        shown_s = ordered_s
    return inf


def _ordered(cycle: Cycle, topology: str) -> bool:
    accepted = cycle.outcome is None or (cycle.outcome.ok and topology not in cycle.outcome.untouched)
    return accepted and any(r.topology == topology for r in cycle.plan.rescales)


def _degrees(snapshot: Snapshot, topology: str) -> dict[str, int]:
    if not snapshot.runs(topology):
        return {}
    return {o.name: o.parallelism for o in snapshot.topology(topology).operators}
