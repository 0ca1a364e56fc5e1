"""What the engine remembers of what the plug-in reported: the present of each topology, and its recent epochs.

Bounded: a topology keeps its last epochs and its last hour of output.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from barograph.engines.spark.outflow import Outflow
from barograph.engines.spark.tally import Tally
from barograph.engines.spark.wire import EdgeSeen, Executor, Life, OperatorSeen, Seated, Seen
from barograph.model import Edge, Grouping, Instance, Operator, Topology

EPOCHS_KEPT = 300
# Of a topology with many instances fewer, so that a driver that is watched does not grow for hours.
SEATS_KEPT = 12_000
FEWEST_EPOCHS_KEPT = 4


@dataclass(slots=True)
class EpochSeen:
    """One epoch of one topology: planned when, on which orders, who was sent where, who really ran where."""

    run: str
    epoch: int
    orders: int
    planned_ms: int
    seated: dict[Instance, Seated] = field(default_factory=dict)
    lives: dict[Instance, Life] = field(default_factory=dict)

    @property
    def is_up(self) -> bool:
        """Every instance has reported itself."""
        return 0 < len(self.seated) <= len(self.lives)

    def executor_of(self, instance: Instance) -> str:
        """Where it really runs; where it was sent, as long as it has not reported itself."""
        life = self.lives.get(instance)
        return life.executor if life is not None else self.seated[instance].executor


class Sight:
    """Takes in reports, answers questions about them."""

    def __init__(self) -> None:
        self.executors: tuple[Executor, ...] = ()
        self.topologies: dict[str, Topology] = {}
        self.known: dict[str, Topology] = {}
        """Topologies as they were last seen, also those that do not run just now."""
        self.epochs: dict[str, OrderedDict[tuple[str, int], EpochSeen]] = {}
        self.output: dict[str, Outflow] = {}
        self.tally = Tally()
        self.kept: set[str] = set()
        """Topologies that somebody can stop and start again, so that their state can be repartitioned."""

    def take(self, seen: Seen) -> None:
        self.executors = seen.executors
        self.tally.add(seen)
        for seat in seen.seated:
            epoch = self._epoch(seat.topology, seat.run, seat.epoch)
            epoch.orders, epoch.planned_ms = seat.orders, seat.planned_ms
            epoch.seated[_instance(seat.topology, seat.operator, seat.index)] = seat
        for life in seen.lives:
            epoch = self._epoch(life.topology, life.run, life.epoch)
            epoch.lives[_instance(life.topology, life.operator, life.index)] = life
        for (topology, tenth), rows in seen.output.items():
            self.output.setdefault(topology, Outflow()).add(tenth, rows)
        names = {o.topology for o in seen.operators}
        self.topologies = {
            name: read_topology(name, seen.operators, seen.edges, name in self.kept)
            for name in in_order_of_submission(names, self.known, seen)
        }
        self.known.update(self.topologies)

    def _epoch(self, topology: str, run: str, number: int) -> EpochSeen:
        epochs = self.epochs.setdefault(topology, OrderedDict())
        found = epochs.get((run, number))
        if found is None:
            seats = max((len(e.seated) for e in epochs.values()), default=0)
            kept = max(FEWEST_EPOCHS_KEPT, min(EPOCHS_KEPT, SEATS_KEPT // max(1, seats)))
            found = epochs[(run, number)] = EpochSeen(run, number, 0, 0)
            while len(epochs) > kept:
                epochs.popitem(last=False)
        return found

    def present(self, topology: str) -> EpochSeen | None:
        """The epoch that was planned last; None where the topology does not run."""
        if topology not in self.topologies:
            return None
        planned = [e for e in self.epochs.get(topology, {}).values() if e.planned_ms > 0]
        return max(planned, key=lambda e: (e.planned_ms, e.epoch)) if planned else None


def in_order_of_submission(names: set[str], known: Iterable[str], seen: Seen) -> list[str]:
    """As they were first seen; those seen for the first time by when Spark planned them, then by name.

    A query that is started again keeps its turn.
    """
    before = [name for name in known if name in names]
    planned_ms: dict[str, int] = {}
    for seat in seen.seated:
        planned_ms[seat.topology] = min(seat.planned_ms, planned_ms.get(seat.topology, seat.planned_ms))
    latest = max(planned_ms.values(), default=0)
    return [*before, *sorted(names.difference(before), key=lambda name: (planned_ms.get(name, latest), name))]


@lru_cache(SEATS_KEPT)
def _instance(topology: str, operator: str, index: int) -> Instance:
    """The same one in all epochs: it is the key of most that is remembered."""
    return Instance(topology, operator, index)


def read_topology(
    name: str, operators: tuple[OperatorSeen, ...], edges: tuple[EdgeSeen, ...], kept: bool = False
) -> Topology:
    """kept: somebody can stop it, repartition its state and start it again."""
    ours = [o for o in operators if o.topology == name]
    stateful = [o.operator for o in ours if o.stateful]

    def fixed_because(seen: OperatorSeen) -> str:
        if not (kept and seen.repartition):
            return seen.fixed_because
        others = ", ".join(o for o in stateful if o != seen.operator)
        return f"its state could only be repartitioned together with that of {others}" if others else ""

    return Topology(
        name,
        tuple(
            Operator(o.operator, o.parallelism, source=o.source, stateful=o.stateful, fixed_because=fixed_because(o))
            for o in ours
        ),
        tuple(Edge(e.source, e.target, Grouping(e.grouping)) for e in edges if e.topology == name),
    )
