"""How many workers a run starts on each node, and their size: from the user's options, else from the policy. Pure.

A policy may need several workers on a node (Liu et al.: one for stateful and one for stateless instances). The node's
CPU stays the same; its seats and memory are divided among its workers.
"""

from dataclasses import dataclass
from math import ceil

from barograph.config import default
from barograph.config.for_runs import NODE_SEATS
from barograph.engines.spark.cluster.settings import LEAST_MEMORY_MB
from barograph.model import Topology
from barograph.policy.definition import Policy

SEATS = NODE_SEATS
"""Default number of instances that a node with one worker can hold."""


@dataclass(frozen=True, slots=True)
class Workers:
    """executors: of each node. seats, memory_mb: of each executor."""

    executors: int
    seats: int
    memory_mb: int


def workers_for(
    policy: Policy | None,
    topology: Topology,
    executors: int | None,
    seats: int | None,
    memory_mb: int = default("cluster.memory"),
) -> Workers:
    """executors, seats: the user's options; None: not given. policy: None where no policy steers.

    memory_mb: of a node with one worker.
    """
    wanted = 1 if policy is None else policy.workers_per_node or 1
    if executors is not None or wanted == 1:
        return Workers(1 if executors is None else executors, SEATS if seats is None else seats, memory_mb)
    if seats is None:
        # One node must still be able to hold everything: each worker has room for all instances of either kind.
        stateful = sum(o.parallelism for o in topology.operators if o.stateful)
        stateless = sum(o.parallelism for o in topology.operators if not o.stateful)
        seats = max(ceil(SEATS / wanted), stateful, stateless)
    return Workers(wanted, seats, max(LEAST_MEMORY_MB, memory_mb // wanted))


def shared_workers(policy: Policy | None, executors: int) -> str:
    """A sentence where nodes have fewer workers than the policy needs; empty where they have enough."""
    wanted = 1 if policy is None else policy.workers_per_node or 1
    if policy is None or executors >= wanted:
        return ""
    return (
        f"{policy.name} needs {wanted} workers on a node and there {'is' if executors == 1 else 'are'} {executors}: "
        "stateful and stateless instances share a worker"
    )
