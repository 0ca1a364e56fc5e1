"""What a query's author asks for it besides its plan: Spark's query knows nothing of priorities and nodes."""

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
