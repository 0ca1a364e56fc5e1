"""What a plan changes, compared with a snapshot: which orders, which workers, and which topology is cut first.

Changes ``PlacementOrders`` and nothing else: the engine sends the orders and waits.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from barograph.engines.check import rescaled
from barograph.engines.spark.orders.placement_orders import PlacementOrders
from barograph.engines.spark.orders.planned_restarts import PlannedRestart, Restartable
from barograph.model import Instance, MigrationMode, Operator, Placement, Plan, Slot, Snapshot, Topology


@dataclass(frozen=True, slots=True)
class ChangedOrder:
    """Of one topology. done: the changes as sentences. moves, rescales: how many there are. slots: whose instances
    change."""

    done: tuple[str, ...]
    moves: int
    rescales: int
    slots: frozenset[Slot]


@dataclass
class ChangedOrders:
    """by_topology: those that change. confirmed: those that are newly ordered to stay as they are. noted: sentences
    about others."""

    by_topology: dict[str, ChangedOrder] = field(default_factory=dict)
    confirmed: list[str] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)

    @property
    def topologies(self) -> list[str]:
        return list(self.by_topology)

    @property
    def done(self) -> list[str]:
        return [*self.noted, *(sentence for c in self.by_topology.values() for sentence in c.done)]

    @property
    def moves(self) -> int:
        return sum(c.moves for c in self.by_topology.values())

    @property
    def rescales(self) -> int:
        return sum(c.rescales for c in self.by_topology.values())

    @property
    def slots(self) -> frozenset[Slot]:
        return frozenset(slot for c in self.by_topology.values() for slot in c.slots)

    def take_back(self, orders: PlacementOrders, topologies: Iterable[str]) -> None:
        """These topologies go on by their earlier orders."""
        gone = [t for t in topologies if self.by_topology.pop(t, None) is not None]
        if gone:
            orders.undo(gone)

    def take_all_back(self, orders: PlacementOrders) -> None:
        """Every topology goes on by its earlier orders."""
        gone, self.by_topology, self.confirmed = [*self.by_topology, *self.confirmed], {}, []
        if gone:
            orders.undo(gone)


@dataclass(frozen=True, slots=True)
class WantedChange:
    """What a plan changes of one topology. before, wanted: where its instances are, and are to be. scaled: operators
    that get another parallelism, with that."""

    before: Placement
    wanted: Placement
    scaled: tuple[Operator, ...]

    @property
    def moved(self) -> list[Instance]:
        return [i for i in self.wanted if i in self.before and self.wanted[i] != self.before[i]]

    @property
    def slots(self) -> frozenset[Slot]:
        """Those whose instances change: that an instance leaves, also when it is removed, and that get one."""
        moves = self.before.moves_to(self.wanted)
        return frozenset(slot for move in moves for slot in (move.source, move.target) if slot is not None)


def change_of(topology: Topology, plan: Plan, now: Snapshot) -> WantedChange | None:
    """None: no instance moves, and no operator is rescaled."""
    after = rescaled(topology, plan)
    wanted = {i: slot for i in after.instances() if (slot := plan.placement.get(i) or now.placement.get(i)) is not None}
    scaled = tuple(o for o in after.operators if o.parallelism != topology.operator(o.name).parallelism)
    found = WantedChange(now.placement.of_topology(topology.name), Placement(wanted), scaled)
    return found if found.moved or scaled else None


def change_orders(found: ChangedOrders, orders: PlacementOrders, plan: Plan, now: Snapshot) -> None:
    """Change the orders as the plan says, and note each change in ``found`` as it is made: if something fails, all can
    be taken back. Only orders to stay are sent, when everything has been changed."""
    for topology in now.topologies:
        change = change_of(topology, plan, now)
        if change is None:
            if orders.confirm(topology.name, plan.placement):
                found.confirmed.append(topology.name)
            continue
        wanted, moved, scaled = change.wanted, change.moved, change.scaled
        counts = {o.name: o.parallelism for o in scaled if not o.stateful}
        waits = plan.mode is MigrationMode.BOUNDARY and len(counts) == len(scaled)
        if waits and orders.is_ordered(topology.name, wanted.slots, counts):
            found.noted.append(f"{topology.name} changes at the end of its epoch, as ordered before")
            continue
        done = [f"moved {i} from {now.placement[i]} to {wanted[i]}" for i in moved]
        done += [
            f"scaled {topology.name}/{o.name} from {topology.operator(o.name).parallelism} to {o.parallelism}"
            for o in scaled
        ]
        orders.change(topology.name, wanted, counts)
        found.by_topology[topology.name] = ChangedOrder(tuple(done), len(moved), len(scaled), change.slots)
    if found.confirmed:
        orders.send(found.confirmed)


def planned_restarts(
    plan: Plan, now: Snapshot, restartable: Mapping[str, Restartable], stopped: Iterable[str]
) -> dict[str, PlannedRestart]:
    """Topologies that must be stopped and started again: ``stopped``, and those whose state is repartitioned."""
    found = {t: PlannedRestart(restartable[t]) for t in stopped}
    for r in plan.rescales:
        operator = now.topology(r.topology).operator(r.operator)
        if operator.stateful and operator.parallelism != r.parallelism:
            found[r.topology] = PlannedRestart(restartable[r.topology], r.parallelism)
    return found


def cut_first(orders: PlacementOrders, cut: set[str], paused: frozenset[str], now: Snapshot) -> set[str]:
    """The topologies that are cut before the others: those that are paused until this plan is in effect, if there is
    already room for them.

    Starting an epoch takes all the CPU the driver can get. If they start one after the other, each topology is
    without output for a shorter time."""
    waiting = cut & paused
    if not waiting:
        return cut
    seated = {i: s for i, s in now.placement.slots.items() if i.topology not in waiting}
    for topology in waiting:
        seated |= orders.placement(topology).slots
    taken, seats = Counter(seated.values()), {w.slot: w.seats for w in now.workers}
    return waiting if all(n <= seats.get(slot, 0) for slot, n in taken.items()) else cut
