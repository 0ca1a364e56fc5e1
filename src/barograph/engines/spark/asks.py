"""What a query's author asks for it, and the priorities that hold since: Spark's query knows nothing of either."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from barograph.model import Topology
from barograph.model.checks import require, require_whole


@dataclass(frozen=True, slots=True)
class Asks:
    """level: priority, 1 is highest. The others as in ``Topology``; None leaves them to the policy."""

    level: int = 2
    desired_nodes: int | None = None
    minimum_nodes: int | None = None
    workers: int | None = None
    isolate_nodes: int = 0

    def __post_init__(self) -> None:
        require_whole("level", self.level, 1)
        for name, least in (("desired_nodes", 1), ("minimum_nodes", 0), ("workers", 1)):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name), least)
        require_whole("isolate_nodes", self.isolate_nodes)
        if self.desired_nodes is not None and self.minimum_nodes is not None:
            require(
                self.minimum_nodes <= self.desired_nodes,
                f"minimum_nodes {self.minimum_nodes} is above desired_nodes {self.desired_nodes}",
            )

    def of(self, topology: Topology) -> Topology:
        return replace(topology, **asdict(self))


class Standings:
    """Of every topology by name, running or not."""

    def __init__(self) -> None:
        self._asks: dict[str, Asks] = {}
        self._levels: dict[str, int] = {}

    def declare(self, topology: str, asks: Asks) -> None:
        """May come before it starts."""
        self._asks[topology] = asks

    def asked(self, topology: str) -> Asks:
        return self._asks.get(topology, Asks())

    def set_levels(self, levels: Mapping[str, int]) -> bool:
        """The priorities that hold from now on; whether that is new."""
        if dict(levels) == self._levels:
            return False
        self._levels = dict(levels)
        return True

    def of(self, topology: Topology) -> Topology:
        """The topology with what its author asks and the level that holds."""
        asked = self.asked(topology.name).of(topology)
        return replace(asked, level=self._levels.get(topology.name, asked.level))
