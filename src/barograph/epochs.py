"""How long epochs may be, and whether a cut may wait for a quieter moment. Pure; who sets epochs and cuts is elsewhere.

A failure replays the open epoch. With D the time until rows flow again, E the epoch's length, lambda the load, mu what
the topology can do and B its backlog, it has caught up after

    D + (lambda (E + D) + B) / (mu - lambda)

so the longest epoch that keeps this within the recovery target R is E = ((R - D)(mu - lambda) - lambda D - B) / lambda.
Long epochs are cheap in steady state; a short one is the price of little to replay.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from barograph.guards.acts import changed, distress_s, load_rows_s
from barograph.guards.guard import homeless
from barograph.guards.rollback import CALM_S
from barograph.guards.trim import Held, made_valid, without
from barograph.model import Cycle, Plan, Reason, Snapshot
from barograph.model.checks import require, require_number, require_positive

RECOVERY_S = 30.0
_FEWEST = 3  # loads that have a range
WAITS = "its cut waits for a quieter moment"


@dataclass(frozen=True, slots=True)
class Recovery:
    """recovery_s: the target R. down_s: D, as measured lately. least_s, most_s: bounds of an epoch.

    near: a length that differs from the present one by less than this part of it is not worth a change.
    """

    recovery_s: float = RECOVERY_S
    down_s: float = 2.0
    least_s: float = 5.0
    most_s: float = 300.0
    near: float = 0.2

    def __post_init__(self) -> None:
        require_positive("recovery_s", self.recovery_s)
        require_number("down_s", self.down_s)
        require_positive("the least epoch", self.least_s)
        require(self.least_s <= self.most_s, f"the least epoch {self.least_s:g} s is above the most {self.most_s:g} s")
        require_number("near", self.near)


@dataclass(frozen=True, slots=True)
class EpochLength:
    seconds: float
    reason: Reason


def epoch_length(now: Snapshot, topology: str, recovery: Recovery, present_s: float | None = None) -> EpochLength:
    """The longest epoch whose replay still catches up in time, within bounds; the present one if it is near."""
    load = load_rows_s(now, topology)
    able = capacity_rows_s(now, topology)
    backlog = next((t.backlog_rows for t in now.topology_metrics if t.topology == topology and t.backlog_known), 0.0)
    numbers = {"recovery_s": recovery.recovery_s, "down_s": recovery.down_s}
    if load is None or load <= 0 or able is None:
        kept = min(recovery.most_s, max(recovery.least_s, present_s or recovery.most_s))
        return EpochLength(kept, Reason(topology, "no load is seen: nothing to replay", {**numbers, "epoch_s": kept}))
    spare = able - load
    longest_s = ((recovery.recovery_s - recovery.down_s) * spare - load * recovery.down_s - backlog) / load
    seconds = min(recovery.most_s, max(recovery.least_s, longest_s))
    if longest_s < recovery.least_s:
        why = "even the shortest epoch would not be caught up in time"
    elif longest_s > recovery.most_s:
        why = "the longest epoch allowed is caught up in time"
    else:
        why = "the longest epoch whose replay is caught up in time"
    # Never a present one that is too long: to miss the target is worse than to change.
    if present_s is not None and seconds * (1 - recovery.near) <= present_s <= seconds:
        seconds, why = present_s, "the present length is near enough"
    numbers |= {"load_rows_s": load, "capacity_rows_s": able, "backlog_rows": backlog, "longest_s": longest_s}
    return EpochLength(seconds, Reason(topology, why, {**numbers, "epoch_s": seconds}))


def capacity_rows_s(now: Snapshot, topology: str) -> float | None:
    """Source rows a second it could do as it is: until its busiest instance, or its fullest node, has no time left."""
    of = now.topology(topology)
    sources = [o.name for o in of.operators if o.source or not of.parents(o.name)]
    read = sum(now.metrics.of_operator(topology, name).executed for name in sources) / now.cycle_s
    mine = [p for (t, _), rows in now.metrics.rows_of_operator.items() if t == topology for p in rows.tolist()]
    busy_s = float(now.metrics.columns["busy_s"][mine].max()) if mine else 0.0
    if read <= 0 or busy_s <= 0:
        return None
    room = [now.cycle_s / busy_s]
    used: dict[str, float] = {}
    for position, instance in enumerate(now.metrics.instances):
        slot = now.placement.get(instance)
        if slot is not None:
            used[slot.node] = used.get(slot.node, 0.0) + float(now.metrics.columns["cpu_s"][position])
    homes = {now.placement[i].node for i in of.instances() if i in now.placement}
    given = {n.name: n.cpu_pct / 100.0 * now.cycle_s for n in now.nodes}
    room += [given[node] / used[node] for node in sorted(homes) if used.get(node, 0.0) > 0 and node in given]
    return read * max(1.0, min(room))


@dataclass(frozen=True, slots=True)
class Quiet:
    """When a cut that is not urgent may fall.

    calm_part: a load at or below this part of the recent loads' range, or their median, is quiet. look_cycles: how many
    are recent.
    most_wait_s: after so long it falls anyway. 0 never waits. known_cycles: of a topology that was seen for fewer than
    so many, nobody knows what is quiet, nor what it will need: its cuts wait too. 0: they do not.
    """

    calm_part: float = 0.5
    look_cycles: int = 30
    most_wait_s: float = 120.0
    known_cycles: int = 3


def in_quiet_moments(quiet: Quiet, history: Sequence[Cycle], cycle: Cycle) -> Cycle:
    """The cycle without the cuts that may wait and should. Shares bite at once as ever."""
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
    distress = distress_s(now, topology)
    if distress is None or distress > CALM_S:
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
        return None  # nobody waits for rows that do not come
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
    return Reason(topology, WAITS, numbers)


def _waiting_since_s(history: Sequence[Cycle], topology: str, now_s: float) -> float:
    """When it began to wait: the first of the cycles in a row that say so."""
    since_s = now_s
    for earlier in reversed(history):
        if not any(r.about == topology and r.why == WAITS for r in earlier.plan.reasons):
            break
        since_s = earlier.snapshot.at_s
    return since_s
