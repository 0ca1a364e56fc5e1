"""Whether a cut that is not urgent waits for a moment of lower load, and for how long. Pure; it cuts nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from barograph.config import default
from barograph.control.guards.acts import changed, distress
from barograph.control.guards.guard import homeless
from barograph.control.guards.rollback import CALM_S
from barograph.control.guards.trim import Held, made_valid
from barograph.engines.epoch_length import load_rows_s
from barograph.engines.reduced import without
from barograph.model import Cycle, Plan, Reason, ReasonCode, Snapshot

_FEWEST = 3  # with fewer loads their range says nothing


@dataclass(frozen=True, slots=True)
class Quiet:
    """When a cut that is not urgent may be made.

    calm_part: a load at or below this part of the recent loads' range, or their median, is quiet. look_cycles: how many
    are recent.
    most_wait_s: after so long the cut is made anyway; 0: cuts never wait. known_cycles: a topology observed for fewer
    cycles has no known quiet load yet, so its cuts wait too; 0: they do not.
    """

    calm_part: float = default("quiet.calm-part")
    look_cycles: int = default("quiet.look-cycles")
    most_wait_s: float = default("quiet.most-wait")
    known_cycles: int = default("quiet.known-cycles")


def in_quiet_moments(quiet: Quiet, history: Sequence[Cycle], cycle: Cycle) -> Cycle:
    """The cycle without the cuts that should wait. Shares and limits stay in the plan."""
    now, plan = cycle.snapshot, cycle.plan
    order = sorted(changed(plan, now), key=lambda name: _urgent(plan, now, name) is None)
    held: Held = {}
    for name in order:
        reason = _waits(quiet, history, cycle, name)
        if reason is not None:
            held[name] = reason
    if not held:
        return cycle

    def build(names: Iterable[str]) -> Plan:
        return without(plan, now, names)

    trimmed, held = made_valid(build(held), now, held, order, build)
    return replace(cycle, plan=replace(trimmed, reasons=(*trimmed.reasons, *held.values())))


def _urgent(plan: Plan, now: Snapshot, topology: str) -> str | None:
    """Why its cut cannot wait; None where it can."""
    if homeless(now, topology):
        return "an instance has no seat"
    found = distress(now, topology)
    if found.backlog_s is None:  # rows that have ended say nothing about those that have not been read
        return "it is unknown how long rows wait"
    if found.backlog_s + (found.latency_s or 0.0) > CALM_S:
        return "rows wait too long already"
    of = now.topology(topology)
    if any(r.topology == topology and r.parallelism > of.operator(r.operator).parallelism for r in plan.rescales):
        return "an operator needs more instances"
    return None


def _waits(quiet: Quiet, history: Sequence[Cycle], cycle: Cycle, topology: str) -> Reason | None:
    now = cycle.snapshot
    if quiet.most_wait_s <= 0 or _urgent(cycle.plan, now, topology) is not None:
        return None
    loads = [
        load
        for c in history[-quiet.look_cycles :]
        if any(t.name == topology for t in c.snapshot.topologies)
        and (load := load_rows_s(c.snapshot, topology)) is not None
    ]
    here = load_rows_s(now, topology)
    if here is None or here <= 0:
        return None  # without load there is no quieter moment
    quiet_at = 0.0
    if len(loads) >= quiet.known_cycles:
        if len(loads) < _FEWEST:
            return None
        least, most = float(np.min(loads)), float(np.max(loads))
        # The median, so that one odd cycle does not make every other look busy.
        quiet_at = max(least + quiet.calm_part * (most - least), float(np.median(loads)))
    waited_s = now.at_s - _waiting_since_s(history, topology, now.at_s)
    if here <= quiet_at or waited_s >= quiet.most_wait_s:
        return None
    numbers = {"load_rows_s": here, "quiet_rows_s": quiet_at, "waited_s": waited_s, "most_wait_s": quiet.most_wait_s}
    return Reason(topology, ReasonCode.WAITS_FOR_QUIET, "its cut waits for a quieter moment", numbers)


def _waiting_since_s(history: Sequence[Cycle], topology: str, now_s: float) -> float:
    """When it began to wait: the first of the cycles in a row that say so."""
    since_s = now_s
    for earlier in reversed(history):
        if not any(r.about == topology and r.code is ReasonCode.WAITS_FOR_QUIET for r in earlier.plan.reasons):
            break
        since_s = earlier.snapshot.at_s
    return since_s
