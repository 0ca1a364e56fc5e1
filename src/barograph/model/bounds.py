"""The largest cluster that can be planned or simulated.

The largest recorded cluster has 1,312 nodes, 65,600 slots and 24,349 instances, and is planned in seconds. These bounds
are four to eight times that: anything larger is more likely a typing error than a cluster, and would
take minutes and gigabytes before an error could be reported.
"""

from barograph.model.checks import require_at_most
from barograph.model.topology import Topology

MOST_NODES = 10_000
MOST_SLOTS = 500_000
MOST_INSTANCES = 100_000


def require_few_nodes(where: str, topology: Topology) -> None:
    """A topology asks for no more nodes than any cluster may have."""
    for name in ("isolate_nodes", "desired_nodes", "minimum_nodes"):
        require_at_most(f"{where}: topology {topology.name}: {name}", getattr(topology, name) or 0, MOST_NODES)
