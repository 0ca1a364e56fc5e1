"""The last orders for each topology: where its instances run and how many there are, as far as there is room now.

An order outlives the executors it names: instances of a lost executor run elsewhere for a while and return when another
executor takes its slot. It also outlives a lack of seats: after a node is lost there may be too few seats for a
topology that was scaled up. Spark would not start it then, so operators that can be scaled get fewer instances until
there are seats again. The engine does the locking.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from barograph.engines.spark.bridge.bridge import Bridge
from barograph.engines.spark.bridge.telemetry import Telemetry
from barograph.engines.spark.orders.node_returns import COLD_S, NodeReturns
from barograph.model import Instance, Placement, Slot, Topology

log = logging.getLogger(__name__)

TopologyOrder = tuple[dict[str, int], list[tuple[str, int, str]]]
"""Parallelism of operators that differ from the query's own, and (operator, index, executor) of instances."""


@dataclass(frozen=True, slots=True)
class FewerInstances:
    """Instances by operator: as wanted when there are enough seats, and as given now."""

    wanted: Mapping[str, int]
    given: Mapping[str, int]

    @property
    def changed(self) -> dict[str, int]:
        return {name: count for name, count in self.given.items() if count != self.wanted[name]}


def fitting(topology: Topology, wanted: Mapping[str, int], seats: int) -> dict[str, int]:
    """Instances by operator: as wanted, or fewer so that there is a seat for each; more only if no operator can shrink.

    The operator with most instances shrinks first: it loses the smallest part of its capacity. A stateful operator
    keeps as many instances as its state is split into.
    """
    found = dict(wanted)
    least = {o.name: o.min_parallelism for o in topology.operators if not o.stateful and not o.fixed_because}
    while sum(found.values()) > seats:
        giving = max((name for name in least if found[name] > least[name]), key=lambda n: found[n], default=None)
        if giving is None:
            break
        found[giving] -= 1
    return found


def _counted(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    changed = [f"{count} instances of {name}" for name, count in after.items() if count != before[name]]
    return ", ".join(changed) or "all instances that were ordered"


class PlacementOrders:
    """Of one application. executors: the executor in each slot now. left_seats: seats that the other topologies leave
    to a topology."""

    def __init__(
        self,
        bridge: Bridge,
        telemetry: Telemetry,
        executors: Callable[[], Mapping[Slot, str]],
        left_seats: Callable[[str], int],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bridge, self._telemetry, self._executors, self._left_seats = bridge, telemetry, executors, left_seats
        self.returns = NodeReturns(now)
        self._counts: dict[str, dict[str, int]] = {}
        self._places: dict[str, Placement] = {}
        self._sent: dict[str, list[tuple[str, int, str]]] = {}  # by executor, as sent to the planner
        self._warmed: set[str] = set()  # new executors that were prepared for instances that return to them
        self._fewer: dict[str, FewerInstances] = {}  # topologies for which there were too few seats
        self._before: dict[str, tuple[dict[str, int], Placement, FewerInstances | None]] = {}  # the last change
        self._not_taken_back: set[str] = set()  # the planner may still have orders that were taken back here

    def placement(self, topology: str) -> Placement:
        return self._places.get(topology, Placement())

    def counts(self, topology: str) -> dict[str, int]:
        """Parallelism of the operators that were rescaled."""
        return dict(self._counts.get(topology, {}))

    def order(self, topology: str) -> TopologyOrder:
        """What is ordered now, on the executors that exist."""
        few, executors = self._fewer.get(topology), self._executors()
        places = [
            (i.operator, i.index, executors[s]) for i, s in self.placement(topology).slots.items() if s in executors
        ]
        return {**self.counts(topology), **(few.changed if few else {})}, places

    def begin(self, topology: str, placement: Placement, counts: Mapping[str, int]) -> None:
        """Replace all orders of a topology before its first epoch, and send them."""
        self._counts[topology], self._places[topology] = dict(counts), placement
        self._fewer.pop(topology, None)
        self.send((topology,))

    def change(self, topology: str, placement: Placement, counts: Mapping[str, int] = MappingProxyType({})) -> None:
        """Note what a plan changes. The plan was made for the instances that exist, also where they are fewer than
        wanted. Nothing is sent yet."""
        self._change_from_here(topology)
        few = self._fewer.pop(topology, None)
        self._counts[topology] = {**self.counts(topology), **(few.changed if few else {}), **counts}
        self._places[topology] = placement

    def _change_from_here(self, topology: str) -> None:
        self._before[topology] = (self.counts(topology), self.placement(topology), self._fewer.get(topology))

    def undo(self, topologies: Iterable[str]) -> None:
        """Take back the last change of each, and send what held before it. What cannot be sent now, ``restore`` sends:
        no order that was taken back is followed later."""
        names = list(topologies)
        for topology in names:
            self._counts[topology], self._places[topology], few = self._before.pop(topology)
            if few is not None:
                self._fewer[topology] = few
        self._not_taken_back.update(names)
        self.send(names)

    def is_ordered(self, topology: str, slots: Mapping[Instance, Slot], counts: Mapping[str, int]) -> bool:
        """Whether all of it has been sent already, so that the next epoch will run that way."""
        same_places = topology in self._sent and self.placement(topology).slots == slots
        return same_places and counts.items() <= self.counts(topology).items()

    def confirm(self, topology: str, placement: Placement) -> bool:
        """Note that instances are to stay where they are, so that they return there after a failure. Returns whether
        that is new. Nothing is sent yet, and nothing need be cut for it."""
        before = self.placement(topology)
        after = Placement({**before.slots, **placement.of_topology(topology).slots})
        if after == before:
            return False
        self._change_from_here(topology)
        self._places[topology] = after
        return True

    def fit(self, topology: str, seats: int | None) -> int:
        """The number of instances of the next query run. If there are more than ``seats`` (None: no limit), operators
        that can be scaled get fewer, until there are seats again or a plan says how many."""
        known, before = self._telemetry.known.get(topology), self._fewer.pop(topology, None)
        if known is None:
            return 0
        ordered = self.counts(topology)
        wanted = before.wanted if before else {o.name: ordered.get(o.name, o.parallelism) for o in known.operators}
        given = dict(wanted) if seats is None else fitting(known, wanted, seats)
        if given != wanted:
            self._fewer[topology] = FewerInstances(wanted, given)
        if given != (before.given if before else wanted):
            log.info("%s: its next run has %s, since %s seats are left to it", topology, _counted(wanted, given), seats)
            self.send((topology,))
        return sum(given.values())

    def begin_smaller(self, topology: str, wanted: Mapping[str, int], given: Mapping[str, int]) -> None:
        """The next query run has these instances, until there are seats for those that are wanted."""
        self._fewer[topology] = FewerInstances(wanted, given)
        self.send((topology,))

    def restore(self) -> None:
        """Send orders again that can be followed again: a slot whose executor was lost has a new one that is past
        its start, or there are seats again for all instances. They take effect at the next epoch."""
        if again := self._not_taken_back.intersection(self._telemetry.topologies):
            self.send(sorted(again))
        present = (self._telemetry.present(topology) for topology in self._telemetry.topologies)
        busy = {epoch.executor_of(instance) for epoch in present if epoch is not None for instance in epoch.seated}
        new = self.returns.look({e: slot.node for slot, e in self._executors().items()}, busy)
        for topology in self._telemetry.topologies:
            _, places = self.order(topology)
            awaited = {e for _, _, e in places} - {e for _, _, e in self._sent.get(topology, places)}
            few = self._fewer.get(topology)
            seats_again = few is not None and not new and self._left_seats(topology) >= sum(few.wanted.values())
            if awaited and awaited <= new:
                self._warm_ahead(topology, [(index, e) for _, index, e in places if e in awaited - self._warmed])
            elif awaited or seats_again:
                if few is not None and seats_again:
                    log.info("%s: its next epoch has %s", topology, _counted(few.given, few.wanted))
                    del self._fewer[topology]
                else:
                    log.info("%s: from its next epoch on, instances return to %s", topology, ", ".join(sorted(awaited)))
                self.send((topology,))

    def send(self, topologies: Iterable[str], cut: Iterable[str] = ()) -> dict[str, int]:
        """Send orders to the planner. Returns the epoch that ends, for each topology that is cut."""
        orders = {topology: self.order(topology) for topology in topologies}
        for topology in orders:  # until they have arrived nothing is ordered, also if sending fails
            self._sent.pop(topology, None)
        ending = self._bridge.order(orders, cut)
        self._sent.update({topology: places for topology, (_, places) in orders.items()})
        self._not_taken_back.difference_update(orders)
        return ending

    def _warm_ahead(self, topology: str, moves: list[tuple[int, str]]) -> None:
        """Prepare new executors before instances return: an executor's first work loads much code, and a whole epoch
        would wait for it. This takes a seat on each executor, so it waits until one is free."""
        executors, present = {e for _, e in moves}, self._telemetry.present(topology)
        if moves and present and self._left_seats(topology) >= len(present.seated) + len(executors):
            self._warmed |= executors
            args = (topology, moves, COLD_S)
            threading.Thread(target=self._bridge.warm, args=args, name="barograph-warm", daemon=True).start()
