"""What runs: a topology is a directed graph of operators, an operator is a number of instances.

Values only. Feedback edges carry traffic but do not count in any order, so that recordings of real topologies
(which have loops) can be read.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from barograph.model.checks import (
    BadInput,
    is_index,
    require,
    require_name,
    require_number,
    require_positive,
    require_topology_name,
    require_unique,
    require_whole,
)

LEVEL = 2  # of a topology for which none is declared; 1 is highest


class Grouping(StrEnum):
    """How rows are distributed over the receiving instances."""

    SHUFFLE = "shuffle"
    FIELDS = "fields"
    GLOBAL = "global"
    ALL = "all"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True, order=True)
class Instance:
    """One long-lived task: its topology, its operator, and its index within the operator."""

    topology: str
    operator: str
    index: int

    def __post_init__(self) -> None:
        require_topology_name("instance.topology", self.topology)
        require_name("instance.operator", self.operator)
        require_whole("instance.index", self.index)

    def __str__(self) -> str:
        return f"{self.topology}/{self.operator}/{self.index}"

    @staticmethod
    def parse(text: str, topology: str = "") -> "Instance":
        """Read ``topology/operator/index``, or ``operator/index`` within a given topology. A topology's name may have a
        slash in it."""
        parts = text.rsplit("/", 2)
        if len(parts) == 2 and topology:
            parts = [topology, *parts]
        if len(parts) != 3 or not is_index(parts[2]):
            raise BadInput(f"{text!r} names no instance: write operator/index, for example count/1")
        return Instance(parts[0], parts[1], int(parts[2]))


@dataclass(frozen=True, slots=True)
class Operator:
    """A stage of a topology, or a lane of one.

    cpu_pct and memory_mb are what the user declares for one instance (r-storm needs them), None where not declared.
    fixed_because says why the parallelism cannot change; empty where it can. excluded: it is to stay as it is.
    scales_with: other operators of its topology that always have as many instances as it has: a change of one is a
    change of all. (Spark keeps the state of all stateful operators of a query in one number of parts.)
    """

    name: str
    parallelism: int
    source: bool = False
    stateful: bool = False
    min_parallelism: int = 1
    max_parallelism: int | None = None
    cpu_pct: float | None = None
    memory_mb: float | None = None
    state_mb: float = 0.0
    fixed_because: str = ""
    excluded: bool = False
    scales_with: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_name("operator.name", self.name)
        here = f"operator {self.name}"
        require_whole(f"{here}: parallelism", self.parallelism, 1)
        require_whole(f"{here}: min_parallelism", self.min_parallelism, 1)
        if self.max_parallelism is not None:
            require_whole(f"{here}: max_parallelism", self.max_parallelism, self.min_parallelism)
        if self.cpu_pct is not None:
            require_number(f"{here}: cpu_pct", self.cpu_pct)
        if self.memory_mb is not None:
            require_number(f"{here}: memory_mb", self.memory_mb)
        require_number(f"{here}: state_mb", self.state_mb)


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows flow from one operator to another. A feedback edge closes a loop and is left out of every order."""

    source: str
    target: str
    grouping: Grouping = Grouping.SHUFFLE
    feedback: bool = False

    def __post_init__(self) -> None:
        require_name("edge.source", self.source)
        require_name("edge.target", self.target)
        require(isinstance(self.grouping, Grouping), f"edge {self.source}->{self.target}: unknown grouping")


@dataclass(frozen=True)
class Topology:
    """A graph of operators, and what its owner asks for it.

    workers: how many workers it asks for (None: as many as the scheduler thinks fit).
    level: priority, 1 is highest. desired_nodes, minimum_nodes: what SPS and DPS share out.
    isolate_nodes: machines of its own under the isolation scheduler, 0 for none.
    quota_cpu_pct, quota_workers: the most CPU that all its instances together may have, and the most workers.
    target_p99_ms: what the 99th percentile of its complete times should stay below.
    """

    name: str
    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...] = ()
    workers: int | None = None
    level: int = LEVEL
    desired_nodes: int | None = None
    minimum_nodes: int | None = None
    isolate_nodes: int = 0
    max_heap_mb: float | None = None
    quota_cpu_pct: float | None = None
    quota_workers: int | None = None
    target_p99_ms: float | None = None

    def __post_init__(self) -> None:
        require_topology_name("topology.name", self.name)
        here = f"topology {self.name}"
        require(len(self.operators) > 0, f"{here} has no operators")
        require_unique(f"{here}: operators", (o.name for o in self.operators))
        require_unique(f"{here}: edges", (f"{e.source}->{e.target} ({e.grouping})" for e in self.edges))
        names = {o.name for o in self.operators}
        for edge in self.edges:
            for end in (edge.source, edge.target):
                require(end in names, f"{here}: edge {edge.source}->{edge.target} names the unknown operator {end!r}")
        if self.workers is not None:
            require_whole(f"{here}: workers", self.workers, 1)
        require_whole(f"{here}: level", self.level, 1)
        if self.desired_nodes is not None:
            require_whole(f"{here}: desired_nodes", self.desired_nodes, 1)
        if self.minimum_nodes is not None:
            require_whole(f"{here}: minimum_nodes", self.minimum_nodes)
            if self.desired_nodes is not None:
                require(
                    self.minimum_nodes <= self.desired_nodes,
                    f"{here}: minimum_nodes {self.minimum_nodes} is above desired_nodes {self.desired_nodes}",
                )
        require_whole(f"{here}: isolate_nodes", self.isolate_nodes)
        if self.quota_cpu_pct is not None:
            require_positive(f"{here}: quota_cpu_pct", self.quota_cpu_pct)
        if self.quota_workers is not None:
            require_whole(f"{here}: quota_workers", self.quota_workers, 1)
        if self.target_p99_ms is not None:
            require_positive(f"{here}: target_p99_ms", self.target_p99_ms)
        for operator in self.operators:
            for other in operator.scales_with:
                together = other in names and operator.name in self._by_name[other].scales_with
                require(together, f"{here}: {operator.name} scales with {other!r}, which does not scale with it")
        require(len(self.order) == len(self.operators), f"{here} has a cycle through {self._in_a_cycle()}")

    def _in_a_cycle(self) -> str:
        done = {o.name for o in self.order}
        return ", ".join(o.name for o in self.operators if o.name not in done)

    @cached_property
    def _by_name(self) -> dict[str, Operator]:
        return {o.name: o for o in self.operators}

    def operator(self, name: str) -> Operator:
        found = self._by_name.get(name)
        if found is None:
            raise BadInput(
                f"topology {self.name} has no operator {name!r}; it has {', '.join(o.name for o in self.operators)}"
            )
        return found

    def has(self, name: str) -> bool:
        return name in self._by_name

    def parents(self, name: str) -> tuple[str, ...]:
        """The operators that feed this one, each once, in the order of the edges; feedback left out."""
        return tuple(dict.fromkeys(e.source for e in self.edges if e.target == name and not e.feedback))

    def children(self, name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(e.target for e in self.edges if e.source == name and not e.feedback))

    @cached_property
    def order(self) -> tuple[Operator, ...]:
        """Topological order; among those that are ready, the order in which they are listed."""
        waiting = {o.name: len(self.parents(o.name)) for o in self.operators}
        done: list[Operator] = []
        while ready := next((o for o in self.operators if waiting.get(o.name) == 0), None):
            done.append(ready)
            del waiting[ready.name]
            for child in self.children(ready.name):
                waiting[child] -= 1
        return tuple(done)

    @cached_property
    def breadth_first(self) -> tuple[Operator, ...]:
        """Breadth-first from the sources (from operators without parents where none is marked as a source)."""
        starts = [o.name for o in self.operators if o.source or not self.parents(o.name)]
        seen = dict.fromkeys(starts)
        queue = deque(starts)
        while queue:
            for child in self.children(queue.popleft()):
                if child not in seen:
                    seen[child] = None
                    queue.append(child)
        return tuple(self._by_name[name] for name in seen)

    def instances(self) -> Iterator[Instance]:
        """Every instance, operator after operator as listed, index rising."""
        for operator in self.operators:
            for index in range(operator.parallelism):
                yield Instance(self.name, operator.name, index)
