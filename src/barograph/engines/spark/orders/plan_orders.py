"""What a plan changes, compared with a snapshot: which orders, which workers, and which topology is cut first.

Changes ``PlacementOrders`` and nothing else: the engine sends the orders and waits.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from barograph.engines.check import rescaled
from barograph.engines.spark.orders.placement_orders import PlacementOrders
from barograph.engines.spark.orders.planned_restarts import PlannedRestart, Restartable
from barograph.model import Instance, MigrationMode, Placement, Plan, Slot, Snapshot


@dataclass(frozen=True, slots=True)
class ChangedOrder:
    """Of one topology. done: the changes as sentences. moves, rescales: how many there are."""

    done: tuple[str, ...]
    moves: int
    rescales: int


@dataclass
class ChangedOrders:
    """by_topology: those that change. noted: sentences about others."""

    by_topology: dict[str, ChangedOrder] = field(default_factory=dict)
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

    def take_back(self, orders: PlacementOrders, topologies: Iterable[str]) -> None:
        """These topologies go on by their earlier orders."""
        gone = [t for t in topologies if self.by_topology.pop(t, None) is not None]
        if gone:
            orders.undo(gone)


def change_orders(orders: PlacementOrders, plan: Plan, now: Snapshot) -> ChangedOrders:
    """Change the orders as the plan says."""
    found = ChangedOrders()
    for topology in now.topologies:
        after = rescaled(topology, plan)
        wanted = {
            i: slot for i in after.instances() if (slot := plan.placement.get(i) or now.placement.get(i)) is not None
        }
        moved = [i for i in wanted if i in now.placement and wanted[i] != now.placement[i]]
        scaled = [o for o in after.operators if o.parallelism != topology.operator(o.name).parallelism]
        if not moved and not scaled:
            orders.confirm(topology.name, plan.placement)
            continue
        counts = {o.name: o.parallelism for o in scaled if not o.stateful}
        waits = plan.mode is MigrationMode.BOUNDARY and len(counts) == len(scaled)
        if waits and orders.is_ordered(topology.name, wanted, counts):
            found.noted.append(f"{topology.name} changes at the end of its epoch, as ordered before")
            continue
        orders.change(topology.name, Placement(wanted), counts)
        done = [f"moved {i} from {now.placement[i]} to {wanted[i]}" for i in moved]
        done += [
            f"scaled {topology.name}/{o.name} from {topology.operator(o.name).parallelism} to {o.parallelism}"
            for o in scaled
        ]
        found.by_topology[topology.name] = ChangedOrder(tuple(done), len(moved), len(scaled))
    return found


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


def moves_of(topology: str, now: Snapshot, wanted: Placement) -> dict[Instance, Slot]:
    """Instances that move, and the slot each moves to."""
    return {
        i: slot
        for i, slot in wanted.slots.items()
        if i.topology == topology and i in now.placement and now.placement[i] != slot
    }


def changed_slots(orders: PlacementOrders, now: Snapshot, topologies: Iterable[str]) -> set[Slot | None]:
    """Slots whose instances change: those that an instance leaves, also when it is removed, and those that get one."""
    found: set[Slot | None] = set()
    for topology in topologies:
        before, after = now.placement.of_topology(topology), orders.placement(topology)
        found |= {slot for move in before.moves_to(after) for slot in (move.source, move.target)}
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
