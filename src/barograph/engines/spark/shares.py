"""CPU shares of instances, held by the control groups of their nodes while their threads come and go with the epochs.

Which share is right is decided elsewhere. Here each instance's thread of the present epoch is put under the share that
was last ordered for the instance, as soon as the thread is known.
"""

from collections.abc import Callable, Iterable, Mapping

from barograph.engines.spark.fence import Groups
from barograph.engines.spark.share_groups import ShareGroups, Usage, node_group
from barograph.engines.spark.share_writes import Held
from barograph.model import Instance

Threads = Mapping[str, Mapping[Instance, int]]
"""Node -> instance -> the thread it runs in now."""


class Shares:
    """Of all nodes of one cluster. groups: None where there are none, and then nothing is held."""

    def __init__(self, groups: Groups | None, nodes: Iterable[str], say: Callable[[str], None]) -> None:
        self._nodes = {} if groups is None else {n: ShareGroups(node_group(groups, n), say) for n in nodes}
        self._shares_pct: dict[Instance, float] = {}
        self._held: dict[str, dict[Instance, Held]] = {}
        self.problem = "" if groups is not None else "CPU shares are not enforced: this cluster has no control groups"

    def order(self, shares_pct: Mapping[Instance, float]) -> None:
        """From now on these; instances that are not named keep theirs."""
        self._shares_pct.update(shares_pct)

    @property
    def ordered_pct(self) -> Mapping[Instance, float]:
        return self._shares_pct

    def hold(self, threads: Threads) -> None:
        """Put every thread that has a share under it. Writes only what changed."""
        for node, groups in self._nodes.items():
            held = {
                instance: Held(tid, self._shares_pct[instance])
                for instance, tid in threads.get(node, {}).items()
                if instance in self._shares_pct and tid > 0
            }
            if held == self._held.get(node, {}):
                continue
            # What could not be held belongs to an epoch that has just ended; the next one is told of in a moment.
            groups.hold(held)
            self._held[node] = held
            self.problem = self.problem or groups.problem

    def usage(self) -> dict[Instance, Usage]:
        return {i: u for groups in self._nodes.values() for i, u in groups.usage().items()}

    def release(self) -> None:
        for groups in self._nodes.values():
            groups.release()
