"""Settings of an embedded cluster. They are checked when made, so that nothing is started for impossible settings."""

import socket
from dataclasses import dataclass

from barograph.config import default
from barograph.engines.spark.cluster.clock_speed import machine_clock
from barograph.engines.spark.cluster.node_limit import LEAST_QUOTA_US, LONG_PERIOD_US
from barograph.engines.spark.local_seats import executor_seats, own_cores
from barograph.model import Node
from barograph.model.checks import BadInput, require, require_number, require_whole

MOST_NODES = 250  # 127.0.0.2 to 127.0.0.251
LEAST_MEMORY_MB = 512  # Spark refuses an executor below 450 MB of usable heap
MASTER_ADDRESS = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """node_cpu: the fence of a node, in cores: one value for all nodes, or one for each; None for no fence.

    seats, memory_mb: of each executor; seats that are not given follow the cores. executors: of each node. port: of the
    master; None takes a free one.
    """

    nodes: int = default("cluster.nodes")
    node_cpu: float | tuple[float, ...] | None = default("cluster.node-cpu")
    seats: int = default("cluster.seats")
    executors: int = default("cluster.executors")
    memory_mb: int = default("cluster.memory")
    port: int | None = default("cluster.port")

    def __post_init__(self) -> None:
        require_whole("nodes", self.nodes, 1)
        require(self.nodes <= MOST_NODES, f"nodes must be at most {MOST_NODES}, not {self.nodes}")
        require_whole("executors per node", self.executors, 1)
        require_whole("memory_mb", self.memory_mb, LEAST_MEMORY_MB)
        if isinstance(self.node_cpu, list | tuple):
            object.__setattr__(self, "node_cpu", tuple(self.node_cpu))  # JSON has it as a list
            given = len(self.node_cpu)
            require(
                given == self.nodes, f"node_cpu has {given} values for {self.nodes} nodes: one for all, or one each"
            )
        for cores in self.node_cpus().values():
            if cores is not None:
                require_number("node_cpu", cores, LEAST_QUOTA_US / LONG_PERIOD_US)
        if self.seats is None:
            object.__setattr__(self, "seats", executor_seats(self._cores(), self.nodes * self.executors))
        require_whole("seats", self.seats, 1)
        if self.port is not None:
            require_whole("port", self.port, 1)
            require(self.port <= 65535, f"port must be at most 65535, not {self.port}")

    def node_names(self) -> tuple[str, ...]:
        return tuple(f"node-{k}" for k in range(1, self.nodes + 1))

    def addresses(self) -> dict[str, str]:
        """Node name -> its own loopback address, so that Spark sees a host of its own."""
        return {f"node-{k}": f"127.0.0.{k + 1}" for k in range(1, self.nodes + 1)}

    def node_cpus(self) -> dict[str, float | None]:
        """Node name -> its fence in cores; None for no fence."""
        if isinstance(self.node_cpu, tuple):
            return dict(zip(self.node_names(), self.node_cpu, strict=True))
        return dict.fromkeys(self.node_names(), self.node_cpu)

    def _cores(self) -> float:
        """Of all nodes together."""
        fences = self.node_cpus().values()
        return min(float(own_cores()), sum(own_cores() if cores is None else cores for cores in fences))

    def model_nodes(self) -> tuple[Node, ...]:
        """The nodes as a policy sees them. A node without a fence has an equal part of this machine's cores."""
        machine, clock = own_cores(), machine_clock()
        memory_mb = float(self.memory_mb * self.executors)
        return tuple(
            Node(
                name, 100.0 * (machine / self.nodes if cores is None else min(cores, machine)),
                self.executors, self.seats, memory_mb, clock.mhz,
            )
            for name, cores in self.node_cpus().items()
        )  # fmt: skip


def require_free_port(port: int | None) -> None:
    """Raise BadInput if the port is in use. None is always free: the system chooses."""
    if port is None:
        return
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((MASTER_ADDRESS, port))
        except OSError as error:
            raise BadInput(f"port {port} cannot be used for the master: {error.strerror}") from error
