"""Answers questions about queries from what the engine remembers of the plug-in's reports: ``WatchedQueries`` without
``refresh``. It asks the plug-in nothing."""

import threading

from barograph.engines.latency import Histogram
from barograph.engines.spark.bridge.output_counts import OutputCounts
from barograph.engines.spark.bridge.telemetry import EpochSeen, Telemetry


class WatchedTelemetry:
    """As of the last look of any observer."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._telemetry = Telemetry()

    def epochs(self, topology: str) -> list[EpochSeen]:
        """The epochs that are remembered, oldest first."""
        with self._lock:
            return list(self._telemetry.epochs.get(topology, {}).values())

    def present(self, topology: str) -> EpochSeen | None:
        """The epoch that was planned last, as it was at the last ``refresh``; None if the topology does not run."""
        with self._lock:
            return self._telemetry.present(topology)

    @property
    def running(self) -> tuple[str, ...]:
        """Names of the topologies that ran at the last ``refresh``, in the order of their submission."""
        return tuple(self._telemetry.topologies)

    @property
    def known(self) -> tuple[str, ...]:
        """Names of all topologies that ever ran."""
        return tuple(self._telemetry.known)

    def output_rows(self, topology: str, start: int = 0, end: int | None = None) -> int:
        """Rows out, as far as they are remembered; in a span of centiseconds since 1970."""
        with self._lock:
            counts = self._telemetry.output.get(topology, OutputCounts())
            return counts.total if end is None else counts.between(start, end)

    def output(self, topology: str) -> dict[int, int]:
        """Rows out by centisecond since 1970, as far as they are remembered."""
        with self._lock:
            return self._telemetry.output.get(topology, OutputCounts()).as_dict()

    def new_output(self, topology: str, known: OutputCounts) -> dict[int, int]:
        """Rows out by centisecond, as far as ``known`` has other numbers."""
        with self._lock:
            return self._telemetry.output.get(topology, OutputCounts()).news_for(known)

    def latency(self, topology: str, clock: str) -> Histogram:
        """Complete times of every row that has left the topology so far; clock: due or read."""
        with self._lock:
            return self._telemetry.latency(topology, clock)
