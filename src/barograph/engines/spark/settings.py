"""What an embedded cluster is like. Checked when it is made, so that nothing is started for settings that cannot be."""

import math
import os
import socket
from dataclasses import dataclass

from barograph.engines.spark.fence import LEAST_QUOTA_US, PERIOD_US
from barograph.model import Node
from barograph.model.checks import BadInput, require, require_number, require_whole

MOST_NODES = 250  # 127.0.0.2 to 127.0.0.251
LEAST_MEMORY_MB = 512  # Spark refuses an executor below 450 MB of usable heap
MASTER_ADDRESS = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """node_cpu: what one node gives, in cores; None for no fence. seats: of each executor. memory_mb: of each executor.

    port: of the master; None takes a free one.
    """

    nodes: int = 3
    node_cpu: float | None = None
    seats: int = 4
    executors: int = 1
    memory_mb: int = 1024
    port: int | None = None

    def __post_init__(self) -> None:
        require_whole("nodes", self.nodes, 1)
        require(self.nodes <= MOST_NODES, f"nodes must be at most {MOST_NODES}, not {self.nodes}")
        require_whole("seats", self.seats, 1)
        require_whole("executors per node", self.executors, 1)
        require_whole("memory_mb", self.memory_mb, LEAST_MEMORY_MB)
        if self.node_cpu is not None:
            require_number("node_cpu", self.node_cpu, LEAST_QUOTA_US / PERIOD_US)
        if self.port is not None:
            require_whole("port", self.port, 1)
            require(self.port <= 65535, f"port must be at most 65535, not {self.port}")

    def node_names(self) -> tuple[str, ...]:
        return tuple(f"node-{k}" for k in range(1, self.nodes + 1))

    def addresses(self) -> dict[str, str]:
        """Node name -> its own loopback address, which Spark takes for a host of its own."""
        return {f"node-{k}": f"127.0.0.{k + 1}" for k in range(1, self.nodes + 1)}

    def model_nodes(self) -> tuple[Node, ...]:
        """The nodes as a policy sees them. Without a fence a node gives an equal part of this machine."""
        cores = math.inf if self.node_cpu is None else self.node_cpu
        cpu_pct = 100.0 * min(cores, len(os.sched_getaffinity(0)) / (self.nodes if self.node_cpu is None else 1))
        memory_mb = float(self.memory_mb * self.executors)
        return tuple(Node(name, cpu_pct, self.executors, self.seats, memory_mb) for name in self.node_names())


def require_free_port(port: int | None) -> None:
    """Refuse a port that somebody listens on. None is always free: the system chooses."""
    if port is None:
        return
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((MASTER_ADDRESS, port))
        except OSError as error:
            raise BadInput(f"port {port} cannot be used for the master: {error.strerror}") from error
