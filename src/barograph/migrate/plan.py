"""The migrator: from what was decided to the Plan, which names only what changes.

It decides order and mode, never places. Shares bite at once and need no cut; a placement or a new parallelism needs
one, and all changes of a topology share it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from barograph.migrate.lend import who_is_short, with_borrowed
from barograph.migrate.order import Step, steps
from barograph.migrate.save import with_savings
from barograph.model import (
    Cycle,
    Demand,
    Instance,
    MigrationMode,
    OperatorDemand,
    Placement,
    Plan,
    Reason,
    Rescale,
    Slot,
    Snapshot,
)
from barograph.model.checks import require_number


@dataclass(frozen=True, slots=True)
class Migrate:
    """The Migrator. With ``boundary`` nobody knows whose epoch ends first: moves that need an order wait a cycle.

    lend: whether limits are above shares where a node has CPU that no other topology there needs.
    delay_s: of a warm-cut, how long its targets run beside the instances that end (``Plan.delay_s``); N-Storm+ has 2 s.
    """

    mode: MigrationMode = MigrationMode.CUT
    lend: bool = False
    delay_s: float = 0.0

    def __post_init__(self) -> None:
        require_number("delay_s", self.delay_s)

    def __call__(
        self,
        history: Sequence[Cycle],
        now: Snapshot,
        demand: Demand,
        placement: Placement,
        reasons: tuple[Reason, ...] = (),
    ) -> Plan:
        rescales = _rescales(now, demand)
        placement = _with_those_who_stay(now, demand, placement)
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
            shares_pct=_by_instance(demand, lambda d: d.shares_pct) if demand.reserved else {},
            limits_pct=self._limits(history, now, demand, placement) if demand.enforced else {},
            cuts=tuple(dict.fromkeys(cuts)) if self.mode in _CUTTING else (),
            mode=self.mode,
            version=now.version,
            delay_s=self.delay_s if self.mode is MigrationMode.WARM_CUT else 0.0,
        )
        return replace(plan, reasons=(*reasons, *_why(order, len(changed))))

    def _limits(
        self, history: Sequence[Cycle], now: Snapshot, demand: Demand, placement: Placement
    ) -> dict[Instance, float]:
        """What is written for each instance.

        Where CPU is short the demand has limits of its own, above the shares; but nobody's are so high that he could
        take what another topology on his node is due. Who is not short may use later what he leaves of his share.
        """
        shares = _by_instance(demand, lambda d: d.shares_pct)
        ceilings = _by_instance(demand, lambda d: d.ceilings_pct)
        if not self.lend or not shares:
            return {**shares, **ceilings}
        short = who_is_short(history, demand)
        limits = with_borrowed(history, now, placement, demand, shares, short)
        limits |= {i: min(ceiling, limits[i]) for i, ceiling in ceilings.items()}
        if not short:
            return limits
        saving = {i: share for i, share in shares.items() if i.topology not in short}
        return with_savings(history, now, placement, limits, saving)


_CUTTING = (MigrationMode.CUT, MigrationMode.WARM_CUT)


def _with_those_who_stay(now: Snapshot, demand: Demand, placement: Placement) -> Placement:
    """Whom a placer had no room for stays where it is: that is no move, and nothing is cut for it."""
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


def _by_instance(demand: Demand, of: Callable[[OperatorDemand], Sequence[float]]) -> dict[Instance, float]:
    return {Instance(d.topology, d.operator, index): pct for d in demand.operators for index, pct in enumerate(of(d))}


def _why(order: tuple[Step, ...], changed: int) -> list[Reason]:
    if not order:
        return []
    numbers = {"moves": float(changed), "cuts": float(len(order))}
    return [Reason("migration", "all changes of a topology share one cut", numbers)]


def _waiting(later: tuple[Step, ...]) -> Reason:
    names = ", ".join(name for step in later for name in step.topologies)
    moves = float(sum(len(step.moves) for step in later))
    return Reason(names, "waits for the seats of topologies whose epoch has not ended yet", {"moves": moves})
