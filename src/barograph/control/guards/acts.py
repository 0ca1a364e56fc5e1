"""Past changes of each topology in short form: all that guards need, and small enough to keep an hour of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from barograph.engines.epoch_length import load_rows_s
from barograph.engines.reduced import applied_part
from barograph.model import Cycle, Placement, Plan, ReasonCode, RefusalCode, Snapshot

HOUR_S = 3600.0
_UNCERTAIN = (RefusalCode.NO_ANSWER, RefusalCode.ENGINE_FAILED)


@dataclass(frozen=True, slots=True)
class Distress:
    """How long a row of a topology has to wait, in two parts: its backlog in seconds of load, and the mean complete
    time. None where unknown, which is not 0: two of them are compared only by what is known of both.
    """

    backlog_s: float | None = None
    latency_s: float | None = None


@dataclass(frozen=True)
class Act:
    """One change of one topology by one plan. New shares alone are no act, since they cost nothing.

    before: where its instances were. parallelism: of the operators it rescaled, before it. distress, load_rows_s: of
    the topology when the act was decided; load_rows_s: None where unknown. distress: None where the act is not to be
    judged by it, since a user ordered it; figures that were too old count as unknown. rollback: whether it undid
    another act.
    """

    at_s: float
    topology: str
    moves: int
    rescales: int
    cuts: int
    before: Placement
    parallelism: tuple[tuple[str, int], ...] = ()
    distress: Distress | None = None
    load_rows_s: float | None = None
    rollback: bool = False


def acts_of(cycle: Cycle) -> tuple[Act, ...]:
    """What a cycle did; nothing where its plan was refused or not applied, nor of topologies that were left out.

    A plan whose outcome never came, or that failed on the way, may have been applied, so it counts. A topology whose
    restart failed is as it was, but it was stopped for it: that counts as a cut.
    """
    outcome = cycle.outcome
    if outcome is None or not (outcome.ok or outcome.failed or any(r.code in _UNCERTAIN for r in outcome.refused)):
        return ()
    now, plan, failed = cycle.snapshot, applied_part(cycle), outcome.failed
    undone = {r.about for r in plan.reasons if r.code is ReasonCode.ROLLED_BACK}
    ordered = any(r.code is ReasonCode.NEW_LEVELS for r in plan.reasons)
    return tuple(
        Act(
            now.at_s,
            topology,
            0 if topology in failed else moves_of(plan, now, topology),
            0 if topology in failed else sum(r.topology == topology for r in plan.rescales),
            1,  # moves and rescales share the topology's one cut, or its one boundary
            now.placement.of_topology(topology),
            tuple(
                (r.operator, now.topology(topology).operator(r.operator).parallelism)
                for r in plan.rescales
                if r.topology == topology and topology not in failed
            ),
            None if ordered else Distress() if figures_stale(plan, topology) else distress(now, topology),
            load_rows_s(now, topology),
            topology in undone,
        )
        for topology in changed(plan, now)
    )


def figures_stale(plan: Plan, topology: str) -> bool:
    """Whether the plan says that figures of the topology are too old to decide by."""
    return any(r.code is ReasonCode.FIGURES_STALE and r.about == topology for r in plan.reasons)


def changed(plan: Plan, now: Snapshot) -> tuple[str, ...]:
    """Topologies that the plan cuts, moves or rescales, in the plan's own order."""
    moved = [i.topology for i, slot in plan.placement.slots.items() if now.placement.get(i) != slot]
    names = dict.fromkeys([*plan.cuts, *(r.topology for r in plan.rescales), *moved])
    known = {t.name for t in now.topologies}
    return tuple(name for name in names if name in known)


def moves_of(plan: Plan, now: Snapshot, topology: str) -> int:
    """How many running instances of the topology go to another slot."""
    return sum(
        1
        for i, slot in plan.placement.slots.items()
        if i.topology == topology and now.placement.get(i) not in (None, slot)
    )


def remember(acts: Sequence[Act], cycle: Cycle) -> tuple[Act, ...]:
    """The acts of the last hour, including this cycle's. Acts before a restart of the engine, whose clock then begins
    at 0, are dropped."""
    now_s = cycle.snapshot.at_s
    return (*(a for a in acts if now_s - HOUR_S < a.at_s < now_s), *acts_of(cycle))


def distress(now: Snapshot, topology: str) -> Distress:
    found = next((t for t in now.topology_metrics if t.topology == topology), None)
    load = load_rows_s(now, topology)
    if found is None or load is None:
        return Distress()
    return Distress(
        found.backlog_rows / max(load, 1.0) if found.backlog_known else None,
        found.latency.mean / 1000.0 if found.latency is not None else None,
    )
