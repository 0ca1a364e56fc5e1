"""What was last ordered of each topology, and as much of it as there is room for now.

An order outlives the executors it names: who was to sit on one that is lost sits elsewhere for a while and comes home
to the one that takes its slot. And it outlives a lack of seats: see ``fewer``. Locking is the engine's business.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from barograph.engines.spark.fewer import Fewer, fitting
from barograph.engines.spark.sight import Sight
from barograph.engines.spark.wire import Bridge
from barograph.model import Instance, Placement, Slot

COLD_S = 20.0  # of a new executor: its own start is over by then
# Instances by operator that differ from the query's own, and who sits on which executor.
Order = tuple[dict[str, int], list[tuple[str, int, str]]]


class StandingOrders:
    """Of one application. executors: who has which slot now. left_seats: seats that others leave to a topology."""

    def __init__(
        self,
        bridge: Bridge,
        sight: Sight,
        executors: Callable[[], Mapping[Slot, str]],
        left_seats: Callable[[str], int],
    ) -> None:
        self._bridge, self._sight, self._executors, self._left_seats = bridge, sight, executors, left_seats
        self._counts: dict[str, dict[str, int]] = {}
        self._places: dict[str, Placement] = {}
        self._sent: dict[str, list[tuple[str, int, str]]] = {}  # by executor, as the planner was told
        self._warmed: set[str] = set()  # new executors that were made ready for who comes home to them
        self._fewer: dict[str, Fewer] = {}  # topologies that there were too few seats for

    def placement(self, topology: str) -> Placement:
        return self._places.get(topology, Placement())

    def counts(self, topology: str) -> dict[str, int]:
        """Of the operators that were rescaled."""
        return dict(self._counts.get(topology, {}))

    def order(self, topology: str) -> Order:
        """What holds of it, on the executors that are there."""
        few, executors = self._fewer.get(topology), self._executors()
        places = [
            (i.operator, i.index, executors[s]) for i, s in self.placement(topology).slots.items() if s in executors
        ]
        return {**self.counts(topology), **(few.changed if few else {})}, places

    def begin(self, topology: str, placement: Placement, counts: Mapping[str, int]) -> None:
        """All of it anew, from the first epoch on."""
        self._counts[topology], self._places[topology] = dict(counts), placement
        self._fewer.pop(topology, None)
        self.send((topology,))

    def change(self, topology: str, placement: Placement, counts: Mapping[str, int] = MappingProxyType({})) -> None:
        """By a plan, which was made of what there is; it is not sent yet."""
        few = self._fewer.pop(topology, None)
        self._counts[topology] = {**self.counts(topology), **(few.changed if few else {}), **counts}
        self._places[topology] = placement

    def is_ordered(self, topology: str, slots: Mapping[Instance, Slot], counts: Mapping[str, int]) -> bool:
        """Whether all of it has been sent already, so that the next epoch will run so."""
        same_places = topology in self._sent and self.placement(topology).slots == slots
        return same_places and counts.items() <= self.counts(topology).items()

    def confirm(self, topology: str, placement: Placement) -> None:
        """Who is told to sit where it sits comes back there after a failure. Nothing is cut for it."""
        before = self.placement(topology)
        mine = {i: s for i, s in placement.slots.items() if i.topology == topology}
        after = Placement({**before.slots, **mine})
        if after != before:
            self._places[topology] = after
            self.send((topology,))

    def fit(self, topology: str, seats: int | None) -> int:
        """How many instances its next life has. Where seats are short (None: they are not), operators that can be
        scaled get fewer, until there are seats again or a plan says how many."""
        known, before = self._sight.known.get(topology), self._fewer.pop(topology, None)
        if known is None:
            return 0
        ordered = self.counts(topology)
        wanted = before.wanted if before else {o.name: ordered.get(o.name, o.parallelism) for o in known.operators}
        given = dict(wanted) if seats is None else fitting(known, wanted, seats)
        if given != wanted:
            self._fewer[topology] = Fewer(wanted, given)
        if given != (before.given if before else wanted):
            self.send((topology,))
        return sum(given.values())

    def bring_home(self) -> None:
        """A slot whose executor was lost has another: who was to sit there does so again from the next epoch on, once
        the new one has run for a while. So do instances that there were no seats for."""
        new = {e.id for e in self._sight.executors if time.time() * 1000 - e.since_ms < COLD_S * 1000}
        for topology in self._sight.topologies:
            _, places = self.order(topology)
            awaited = {e for _, _, e in places} - {e for _, _, e in self._sent.get(topology, places)}
            few = self._fewer.get(topology)
            seats_again = few is not None and not new and self._left_seats(topology) >= sum(few.wanted.values())
            if awaited and awaited <= new:
                self._warm_ahead(topology, [(index, e) for _, index, e in places if e in awaited - self._warmed])
            elif awaited or seats_again:
                if seats_again:
                    del self._fewer[topology]
                self.send((topology,))

    def send(self, topologies: Iterable[str], cut: Iterable[str] = ()) -> dict[str, int]:
        """Tell the planner; what is cut is answered with the epoch that ends."""
        orders = {topology: self.order(topology) for topology in topologies}
        self._sent.update({topology: places for topology, (_, places) in orders.items()})
        return self._bridge.order(orders, cut)

    def _warm_ahead(self, topology: str, moves: list[tuple[int, str]]) -> None:
        """A new executor's first work loads much code: better now than when a whole epoch waits for it. It takes a seat
        on each of them, and waits until there is one to spare."""
        executors, present = {e for _, e in moves}, self._sight.present(topology)
        if moves and present and self._left_seats(topology) >= len(present.seated) + len(executors):
            self._warmed |= executors
            args = (topology, moves, COLD_S)
            threading.Thread(target=self._bridge.warm, args=args, name="barograph-warm", daemon=True).start()
