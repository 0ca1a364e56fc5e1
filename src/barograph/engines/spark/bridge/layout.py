"""The layout of a topology's numbers in the plug-in's answers: which instance has which position, and which edge which
block. It is sent only when it changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from barograph.engines.spark.bridge.message import Message, Whole
from barograph.model import Edge, Grouping, Instance, Operator, Topology

INSTANCES_KEPT = 12_000


@dataclass(frozen=True, slots=True)
class OperatorSeen:
    """An operator as the planner sees it."""

    name: str
    parallelism: int
    source: bool
    stateful: bool
    fixed_because: str
    repartition: bool  # its parallelism changes with a repartition of its state


@dataclass(frozen=True, slots=True)
class EdgeSeen:
    """An edge as the planner sees it."""

    source: str
    target: str
    grouping: str


@dataclass(frozen=True, slots=True)
class EdgeBlock:
    """An edge, its instances by position in the topology, and where its counts are among those of the topology."""

    source: str
    target: str
    senders: slice
    receivers: slice
    counts: slice

    @property
    def shape(self) -> tuple[int, int]:
        return self.senders.stop - self.senders.start, self.receivers.stop - self.receivers.start


@dataclass(frozen=True, eq=False)
class TopologyLayout:
    """ids: one for each instance, operator by operator. An instance that was removed and came back has a new id."""

    id: int
    name: str
    operators: tuple[OperatorSeen, ...]
    edges: tuple[EdgeSeen, ...]
    ids: Whole

    @cached_property
    def instances(self) -> tuple[Instance, ...]:
        return tuple(instance_of(self.name, o.name, i) for o in self.operators for i in range(o.parallelism))

    @cached_property
    def spans(self) -> dict[str, slice]:
        """Operator -> the positions of its instances."""
        found, at = {}, 0
        for operator in self.operators:
            found[operator.name] = slice(at, at + operator.parallelism)
            at += operator.parallelism
        return found

    @cached_property
    def blocks(self) -> tuple[EdgeBlock, ...]:
        found, at = [], 0
        for edge in self.edges:
            senders, receivers = self.spans[edge.source], self.spans[edge.target]
            size = (senders.stop - senders.start) * (receivers.stop - receivers.start)
            found.append(EdgeBlock(edge.source, edge.target, senders, receivers, slice(at, at + size)))
            at += size
        return tuple(found)

    @property
    def counts(self) -> int:
        """How many numbers of traffic it has."""
        return self.blocks[-1].counts.stop if self.blocks else 0

    @cached_property
    def sources(self) -> NDArray[np.bool_]:
        """By position: whether the instance reads from a source."""
        return self._where(o.name for o in self.operators if o.source)

    @cached_property
    def sinks(self) -> NDArray[np.bool_]:
        """By position: whether rows leave the topology there."""
        feeding = {e.source for e in self.edges}
        return self._where(o.name for o in self.operators if o.name not in feeding)

    def _where(self, operators: Iterable[str]) -> NDArray[np.bool_]:
        found = np.zeros(len(self.ids), dtype=np.bool_)
        for name in operators:
            found[self.spans[name]] = True
        return found

    def topology(self, restartable: bool = False) -> Topology:
        """restartable: it can be stopped, its state repartitioned, and started again. Raises BadInput if the planner's
        names cannot be used."""
        # Spark repartitions the state of all operators of a query at once, into one number of parts.
        stuck = next((o.name for o in self.operators if o.stateful and not o.repartition), "")
        keyed = [o.name for o in self.operators if o.stateful and o.repartition] if restartable and not stuck else []

        def operator(seen: OperatorSeen) -> Operator:
            others = tuple(name for name in keyed if name != seen.name) if seen.name in keyed else ()
            fixed_because = seen.fixed_because
            if seen.name in keyed:
                fixed_because = ""
            elif restartable and seen.repartition:
                fixed_because = f"its state can only be repartitioned together with that of {stuck}, which Spark cannot"
            return Operator(
                seen.name, seen.parallelism, source=seen.source, stateful=seen.stateful,
                fixed_because=fixed_because, scales_with=others,
            )  # fmt: skip

        return Topology(
            self.name,
            tuple(map(operator, self.operators)),
            tuple(Edge(e.source, e.target, Grouping(e.grouping)) for e in self.edges),
        )


@lru_cache(INSTANCES_KEPT)
def instance_of(topology: str, operator: str, index: int) -> Instance:
    """One object for all epochs, because it is the key of most of what is remembered."""
    return Instance(topology, operator, index)


def read_layouts(message: Message) -> list[TopologyLayout]:
    """The topologies whose layout has changed."""
    operators: dict[int, list[OperatorSeen]] = {}
    for at, name, parallelism, source, stateful, fixed_because, repartition in zip(
        message.whole("operator_layout"), message.texts("operator_name"), message.whole("operator_parallelism"),
        message.whole("operator_source"), message.whole("operator_stateful"), message.texts("operator_fixed_because"),
        message.whole("operator_repartition"), strict=True,
    ):  # fmt: skip
        operators.setdefault(at, []).append(
            OperatorSeen(name, parallelism, bool(source), bool(stateful), fixed_because, bool(repartition))
        )
    edges: dict[int, list[EdgeSeen]] = {}
    for at, source_name, target, grouping in zip(
        message.whole("edge_layout"), message.texts("edge_source"), message.texts("edge_target"),
        message.texts("edge_grouping"), strict=True,
    ):  # fmt: skip
        edges.setdefault(at, []).append(EdgeSeen(source_name, target, grouping))
    found, ids, start = [], message.numbers("instance_id"), 0
    for at, (number, name) in enumerate(
        zip(message.whole("layout_topology"), message.texts("layout_name"), strict=True)
    ):
        mine = tuple(operators.get(at, ()))
        end = start + sum(o.parallelism for o in mine)
        found.append(TopologyLayout(number, name, mine, tuple(edges.get(at, ())), ids[start:end]))
        start = end
    return found
