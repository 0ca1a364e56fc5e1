"""How large a cluster may be that is planned or simulated.

The largest recorded cluster has 1,312 nodes, 65,600 slots and 24,349 instances, and is planned in seconds. These bounds
are some eight times that: what lies beyond is more likely a slip of the pen than a cluster, and would take minutes and
gigabytes before anything could be said about it.
"""

MOST_NODES = 10_000
MOST_SLOTS = 500_000
MOST_INSTANCES = 200_000
