"""CPU shares of instances while their threads come and go with the epochs.

Which share is right is decided elsewhere. Here each instance's thread of the present epoch is put under the share that
was last ordered for the instance, as soon as the thread is known.
"""

import time
from collections.abc import Callable, Iterable, Mapping

from barograph.engines.spark.share_groups import ClusterShares, Usage
from barograph.engines.spark.share_writes import Held
from barograph.model import Instance

MOST_PCT = 100.0
# What an instance's thread starts (a pool of the network's, the state store's) is born under its share and would stay
# there as long as nothing changes: so everybody is put in order again after a while.
AGAIN_S = 1.0
Threads = Mapping[Instance, tuple[str, int]]
"""Instance -> its node and the thread it runs in now."""


class Shares:
    """What was ordered, on the control groups of one cluster."""

    def __init__(self, cluster: ClusterShares, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._clock = cluster, clock
        self._written_s = float("-inf")
        self._ordered_pct: dict[Instance, float] = {}
        self._held: dict[Instance, tuple[str, Held]] = {}
        self._lifted: frozenset[str] = frozenset()

    @property
    def problem(self) -> str:
        """Why nothing is held, in one sentence; empty while all is well."""
        return self._cluster.problem

    @property
    def ordered_pct(self) -> Mapping[Instance, float]:
        return self._ordered_pct

    def order(self, shares_pct: Mapping[Instance, float]) -> None:
        """From now on these; instances that are not named keep theirs."""
        self._ordered_pct.update(shares_pct)

    def lift(self, topologies: Iterable[str]) -> None:
        """Until the next word, instances of these may use all that one instance can: what ends an epoch and begins the
        next, above all writing state, is work of their threads, and everybody waits for it."""
        self._lifted = frozenset(topologies)

    def hold(self, threads: Threads) -> None:
        """Put every thread that has a share under it, at once where something changed, and no other thread."""
        held = {
            instance: (node, Held(tid, MOST_PCT if instance.topology in self._lifted else self._ordered_pct[instance]))
            for instance, (node, tid) in threads.items()
            if instance in self._ordered_pct and tid > 0
        }
        now_s = self._clock()
        if held != self._held or (held and now_s - self._written_s >= AGAIN_S):
            # What could not be held belongs to an epoch that has just ended; the next one is told of in a moment.
            self._cluster.hold(held)
            self._held, self._written_s = held, now_s

    def usage(self) -> dict[Instance, Usage]:
        return self._cluster.usage()
