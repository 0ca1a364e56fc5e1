"""What other packages need of the Spark engine besides the port, each as a small interface. Nothing is done here."""

from collections.abc import Mapping
from typing import Protocol

from barograph.engines.latency import Histogram
from barograph.engines.port import CONTROLLER
from barograph.engines.spark.bridge.telemetry import EpochSeen
from barograph.engines.spark.orders.source_gates import SourceGates
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.model import Snapshot


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

    def output_rows(self, topology: str) -> int:
        """Rows out, as far as they are remembered."""
        ...

    def latency(self, topology: str, clock: str) -> Histogram:
        """Complete times of every row that has left the topology so far; clock: due or read."""
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
