"""What other packages need of the Spark engine besides the port, each as a small interface. Nothing is done here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from barograph.engines.latency import Histogram
from barograph.engines.port import CONTROLLER
from barograph.engines.spark.bridge.output_counts import OutputCounts
from barograph.engines.spark.bridge.telemetry import EpochSeen
from barograph.engines.spark.orders.source_gates import SourceGates
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.model import Node, Outcome, Placement, Plan, Snapshot, Topology, Worker


class WatchedQueries(Protocol):
    """Queries as they go: for experiments, tests and benches. All but ``refresh`` answer as of the last look of any
    observer."""

    def refresh(self) -> None:
        """Take in what the plug-in reports."""
        ...

    @property
    def running(self) -> tuple[str, ...]:
        """Names of the topologies that run, in the order of their submission."""
        ...

    def present(self, topology: str) -> EpochSeen | None:
        """The epoch that was planned last; None if the topology does not run."""
        ...

    def epochs(self, topology: str) -> list[EpochSeen]:
        """The epochs that are remembered, oldest first."""
        ...

    def output(self, topology: str) -> dict[int, int]:
        """Rows out by centisecond since 1970, as far as they are remembered."""
        ...

    def output_rows(self, topology: str, start: int = 0, end: int | None = None) -> int:
        """Rows out, as far as they are remembered; in a span of centiseconds since 1970."""
        ...

    def new_output(self, topology: str, known: OutputCounts) -> dict[int, int]:
        """Rows out by centisecond, as far as ``known`` has other numbers."""
        ...

    def latency(self, topology: str, clock: str) -> Histogram:
        """Complete times of every row that has left the topology so far; clock: due or read."""
        ...


class ArrangedQueries(WatchedQueries, Protocol):
    """Queries that a run of a workload places, follows and leaves; what goes through the port is in it too."""

    def observe(self, observer: str = CONTROLLER) -> Snapshot: ...

    def apply(self, plan: Plan) -> Outcome: ...

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every known node, including dead and released ones."""
        ...

    def workers(self) -> tuple[Worker, ...]:
        """The workers that are alive now."""
        ...

    def place_first(
        self, topology: Topology, placement: Placement, parallelism: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Order a topology's placement, and the parallelism of rescaled operators, before it starts."""
        ...

    def orders(self, topology: str) -> tuple[Placement, dict[str, int]]:
        """The last orders for a topology: its placement, and the parallelism of operators that were rescaled."""
        ...

    def hold(self, topology: str) -> bool:
        """End the present epoch and begin no other. False if that did not happen in time."""
        ...

    def repartition(self, checkpoint: str, count: int) -> str:
        """Split the state of a stopped query over ``count`` instances. Returns "" when done, else why not."""
        ...


class PrioritisedQueries(Protocol):
    """What a change of priorities reads and sets."""

    gates: SourceGates
    heeds_triggers: bool
    holds_version: int

    def refresh(self) -> None: ...

    def observe(self, observer: str = CONTROLLER) -> Snapshot: ...

    @property
    def running(self) -> tuple[str, ...]: ...

    def options_of(self, topology: str) -> QueryOptions: ...

    def set_levels(self, levels: Mapping[str, int]) -> int:
        """Returns the first version of the snapshot that has them."""
        ...

    def is_still(self, topology: str, timeout_s: float) -> bool:
        """Whether its sources rest and none of its rows is in flight."""
        ...

    def flows(self, topology: str, timeout_s: float) -> bool:
        """Whether all instances of its sources run and read."""
        ...
