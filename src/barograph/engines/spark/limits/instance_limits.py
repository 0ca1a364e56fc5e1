"""CPU limits of instances, kept in force while their threads change with every epoch.

Which limit is right is decided elsewhere. Here each instance's thread of the present epoch gets the limit that was last
ordered for the instance, as soon as the thread is known.
"""

import time
from collections.abc import Callable, Iterable, Mapping

from barograph.engines.spark.limits.cluster_limits import ClusterLimits
from barograph.engines.spark.limits.control_groups import GroupUsage
from barograph.engines.spark.limits.group_writes import ThreadLimit
from barograph.model import Instance

MOST_PCT = 100.0
# Threads that an instance's thread starts (of a network pool, of the state store) begin in its group and would stay
# there as long as nothing changes: so limits are written again after this time.
AGAIN_S = 1.0
Threads = Mapping[Instance, tuple[str, int]]
"""Instance -> its node and the thread it runs in now."""


class InstanceLimits:
    """The limits that were ordered, on the control groups of one cluster."""

    def __init__(self, cluster: ClusterLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._clock = cluster, clock
        self._written_s = float("-inf")
        self._ordered_pct: dict[Instance, float] = {}
        self._held: dict[Instance, tuple[str, ThreadLimit]] = {}
        self._lifted: frozenset[str] = frozenset()

    @property
    def problem(self) -> str:
        """Why limits are not enforced, in one sentence; empty if they are."""
        return self._cluster.problem

    @property
    def ordered_pct(self) -> Mapping[Instance, float]:
        return self._ordered_pct

    def order(self, limits_pct: Mapping[Instance, float]) -> None:
        """Set these limits; instances that are not named keep theirs."""
        self._ordered_pct.update(limits_pct)

    def lift(self, topologies: Iterable[str]) -> None:
        """Until the next call, instances of these topologies may use a whole core. The work between two epochs, above
        all writing state, is done in their threads, and the whole topology waits for it."""
        self._lifted = frozenset(topologies)

    def hold(self, threads: Threads) -> None:
        """Limit every thread whose instance has a limit, and no other; written at once if something changed."""
        held = {
            instance: (node, ThreadLimit(tid, self._limit_pct(instance)))
            for instance, (node, tid) in threads.items()
            if instance in self._ordered_pct and tid > 0
        }
        now_s = self._clock()
        if held != self._held or (held and now_s - self._written_s >= AGAIN_S):
            # A thread that could not be limited belongs to an epoch that has just ended; the next epoch reports soon.
            self._cluster.hold(held)
            self._held, self._written_s = held, now_s

    def usage(self) -> dict[Instance, GroupUsage]:
        return self._cluster.usage()

    def _limit_pct(self, instance: Instance) -> float:
        return MOST_PCT if instance.topology in self._lifted else self._ordered_pct[instance]
