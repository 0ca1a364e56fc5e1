"""The migrator: from what was decided to the Plan, which names only what changes.

It decides order and mode, never places. Shares take effect at once and need no cut; a placement or a new parallelism
needs one, and all changes of a topology share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from barograph.migrate.order import MigrationStep, steps
from barograph.model import (
    Cycle,
    Demand,
    Instance,
    MigrationMode,
    Placement,
    Plan,
    Reason,
    ReasonCode,
    Rescale,
    Slot,
    Snapshot,
)
from barograph.model.checks import require_number


@dataclass(frozen=True, slots=True)
class Migrate:
    """The Migrator. With ``boundary`` the order in which epochs end is unknown: moves that need an order wait a cycle.

    delay_s: of a warm-cut, how long its targets run beside the instances that end (``Plan.delay_s``); N-Storm+ has 2 s.
    """

    mode: MigrationMode = MigrationMode.CUT
    delay_s: float = 0.0

    def __post_init__(self) -> None:
        require_number("delay_s", self.delay_s)

    def __call__(
        self,
        history: Sequence[Cycle],  # noqa: ARG002  # a migrator may need it
        now: Snapshot,
        demand: Demand,
        placement: Placement,
        reasons: tuple[Reason, ...] = (),
    ) -> Plan:
        rescales = _rescales(now, demand)
        placement = _with_those_that_stay(now, demand, placement)
        order = steps(now, placement)
        if self.mode is MigrationMode.BOUNDARY and len(order) > 1:
            reasons = (*reasons, _waiting(order[1:]))
            later = {name for step in order[1:] for name in step.topologies}
            rescales = tuple(r for r in rescales if r.topology not in later)
            order = order[:1]
        moving = {name for step in order for name in step.topologies}
        changed = _changed(now, placement, moving)
        cuts = [name for step in order for name in step.topologies]
        cuts += [r.topology for r in rescales if r.topology not in moving]
        plan = Plan(
            placement=Placement(changed),
            rescales=rescales,
            shares_pct=demand.shares_by_instance() if demand.reserved else {},
            cuts=tuple(dict.fromkeys(cuts)) if self.mode in _CUTTING else (),
            mode=self.mode,
            version=now.version,
            delay_s=self.delay_s if self.mode is MigrationMode.WARM_CUT else 0.0,
        )
        return replace(plan, reasons=(*reasons, *_why(order, len(changed))))


_CUTTING = (MigrationMode.CUT, MigrationMode.WARM_CUT)


def _with_those_that_stay(now: Snapshot, demand: Demand, placement: Placement) -> Placement:
    """An instance that the placer had no room for stays where it is: that is no move, and needs no cut."""
    degrees = {(d.topology, d.operator): d.parallelism for d in demand.operators}
    stay = {
        i: slot
        for i, slot in now.placement.slots.items()
        if i not in placement and i.index < degrees.get((i.topology, i.operator), 0)
    }
    return Placement({**stay, **placement.slots}) if stay else placement


def _changed(now: Snapshot, placement: Placement, moving: set[str]) -> dict[Instance, Slot]:
    """Instances that move now, in their order, each with the slot it gets. Those that stay are left out."""
    return {
        i: slot for i, slot in sorted(placement.slots.items()) if i.topology in moving and now.placement.get(i) != slot
    }


def _rescales(now: Snapshot, demand: Demand) -> tuple[Rescale, ...]:
    present = {(t.name, o.name): o.parallelism for t in now.topologies for o in t.operators}
    return tuple(
        Rescale(d.topology, d.operator, d.parallelism)
        for d in demand.operators
        if present.get((d.topology, d.operator), d.parallelism) != d.parallelism
    )


def _why(order: tuple[MigrationStep, ...], changed: int) -> list[Reason]:
    if not order:
        return []
    numbers = {"moves": float(changed), "cuts": float(len(order))}
    return [Reason("migration", ReasonCode.ONE_CUT, "all changes of a topology share one cut", numbers)]


def _waiting(later: tuple[MigrationStep, ...]) -> Reason:
    names = ", ".join(name for step in later for name in step.topologies)
    moves = float(sum(len(step.moves) for step in later))
    why = "waits for the seats of topologies whose epoch has not ended yet"
    return Reason(names, ReasonCode.WAITS_FOR_SEATS, why, {"moves": moves})
