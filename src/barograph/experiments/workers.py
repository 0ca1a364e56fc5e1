"""How many workers a run starts on each node, and how large they are: as the user says, else as the policy wants. Pure.

A policy that wants several workers on a node (Liu et al.: one for stateful and one for stateless instances) gets them
without being asked for. The node stays what it was: its fence is its own, and seats and memory are split over its
workers.
"""

from dataclasses import dataclass
from math import ceil

from barograph.engines.spark.settings import LEAST_MEMORY_MB, ClusterSettings
from barograph.model import Topology
from barograph.policies import Policy

SEATS = 8
"""Instances that a node with one worker can hold unless the user says otherwise."""


@dataclass(frozen=True, slots=True)
class Workers:
    """executors: of each node. seats, memory_mb: of each executor."""

    executors: int
    seats: int
    memory_mb: int


def workers_for(policy: Policy | None, topology: Topology, executors: int | None, seats: int | None) -> Workers:
    """executors, seats: what the user says; None leaves it open. policy: None where no policy steers."""
    memory_mb = ClusterSettings().memory_mb
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
    """One sentence where nodes have fewer workers than the policy wants; empty where they have enough."""
    wanted = 1 if policy is None else policy.workers_per_node or 1
    if policy is None or executors >= wanted:
        return ""
    return (
        f"{policy.name} wants {wanted} workers on a node and there {'is' if executors == 1 else 'are'} {executors}: "
        "stateful and stateless instances share a worker"
    )
