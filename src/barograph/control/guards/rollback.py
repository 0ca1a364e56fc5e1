"""Whether a change of a topology helped, and the plan that undoes it if not.

An act is judged once, in the first cycle after its probation, by the topology's distress: how long a row has to wait.
It did not help if the topology was in distress before it and is in no less now. It did harm if distress has grown well
beyond what it was. If the load has grown meanwhile, the act cannot be judged and stands. What is known of distress only
before the act, or only now, says nothing about it: an unknown backlog is not an empty one.
"""

from collections.abc import Sequence

from barograph.control.guards.acts import Act, Distress, distress, figures_stale
from barograph.engines.check import refusals
from barograph.engines.epoch_length import load_rows_s
from barograph.model import Cycle, Instance, MigrationMode, Placement, Plan, Reason, ReasonCode, Rescale, Slot, Snapshot

CALM_S = 1.0  # a topology whose rows wait no longer than this is not in distress
HARM = 1.5  # growth of distress by a smaller factor is noise
SAME_LOAD = 0.10  # loads that differ by less than this part count as the same


def due(acts: Sequence[Act], history: Sequence[Cycle], cycle: Cycle, probation_s: float) -> tuple[Act, ...]:
    """Acts whose probation has just ended: the last of each topology, unless it is a rollback itself. While figures of
    the topology are too old, the act waits for its judgement."""
    now = cycle.snapshot
    last = {act.topology: act for act in acts if act.at_s < now.at_s}
    return tuple(
        act
        for act in last.values()
        if not act.rollback
        and act.at_s + probation_s <= now.at_s
        and not act.at_s + probation_s <= _looked_s(history, act.topology) <= now.at_s
        and not figures_stale(cycle.plan, act.topology)
        and any(t.name == act.topology for t in now.topologies)
    )


def _looked_s(history: Sequence[Cycle], topology: str) -> float:
    """When its figures were last known; -1: never."""
    known = (c.snapshot.at_s for c in reversed(history) if not figures_stale(c.plan, topology))
    return next(known, -1.0)


def verdict(act: Act, now: Snapshot) -> Reason | None:
    """Why the act is to be undone; None where it helped, did no harm, or cannot be judged."""
    load = load_rows_s(now, act.topology)
    compared = None if act.distress is None else _compared(act.distress, distress(now, act.topology))
    if compared is None or load is None or act.load_rows_s is None:
        return None
    if load > act.load_rows_s * (1 + SAME_LOAD):
        return None
    before, after = compared
    in_vain = before > CALM_S and after >= before
    harm = after > CALM_S and after > HARM * before
    if not in_vain and not harm:
        return None
    numbers = {"before_s": before, "after_s": after, "load_rows_s": load, "tried_s": now.at_s - act.at_s}
    return Reason(act.topology, ReasonCode.ROLLED_BACK, "rolled back: the last change did not help", numbers)


def _compared(before: Distress, after: Distress) -> tuple[float, float] | None:
    """Both, as the sums of those parts that are known of both; None where there is no such part."""
    parts = ((before.backlog_s, after.backlog_s), (before.latency_s, after.latency_s))
    known = [(then, now) for then, now in parts if then is not None and now is not None]
    return (sum(then for then, _ in known), sum(now for _, now in known)) if known else None


def unjudged(act: Act, now: Snapshot) -> Reason | None:
    """That the act, which ``verdict`` lets stand, cannot be judged although nothing else is in the way: distress was
    unknown before it, or is now, or what the topology was in distress by is no longer known. None where it can be
    judged, where it is not to be, or where other figures are missing too."""
    there = any(t.topology == act.topology for t in now.topology_metrics)
    if not there or act.distress is None or act.load_rows_s is None:
        return None
    unknown, before, after = Distress(), act.distress, distress(now, act.topology)
    compared = _compared(before, after)
    if compared is not None and not (_known_s(before) > CALM_S >= compared[0]):
        return None
    if after == unknown:
        what = "the backlog of its source is unknown"
    elif before == unknown:
        what = "it was unknown how long rows waited before it"
    else:
        what = "how long rows wait is known by other figures than before it"
    why = f"not judged: {what}, so a change that does not help is not rolled back"
    return Reason(act.topology, ReasonCode.NOT_JUDGED, why, {"tried_s": now.at_s - act.at_s})


def _known_s(found: Distress) -> float:
    return (found.backlog_s or 0.0) + (found.latency_s or 0.0)


def undo(act: Act, now: Snapshot, mode: MigrationMode) -> Plan | None:
    """The plan that undoes the act; None where it is no longer possible: a worker has died, or seats are taken."""
    topology = now.topology(act.topology)
    counts = dict(act.parallelism)
    rescales = tuple(
        Rescale(topology.name, name, count)
        for name, count in counts.items()
        if topology.has(name) and topology.operator(name).parallelism != count
    )
    places: dict[Instance, Slot] = {}
    for operator in topology.operators:
        for index in range(counts.get(operator.name, operator.parallelism)):
            instance = Instance(topology.name, operator.name, index)
            slot = act.before.get(instance)
            if slot is not None and now.placement.get(instance) != slot:
                places[instance] = slot
    if not places and not rescales:
        return None
    cutting = mode in (MigrationMode.CUT, MigrationMode.WARM_CUT)
    plan = Plan(Placement(places), rescales, cuts=(topology.name,) if cutting else (), mode=mode, version=now.version)
    return None if refusals(plan, now) else plan
