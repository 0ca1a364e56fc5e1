"""When instances may return to a node that lost its executor: once the new one is past its start, and later each time
if executors of that node die again and again soon after they got instances.

It decides no placement. Times are on a monotonic clock.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from barograph.engines.spark.backoff import doubled_s

log = logging.getLogger(__name__)

COLD_S = 20.0  # a new executor has finished its own start by then
SOON_S = 60.0  # an executor that dies sooner after it got instances died soon
LONGEST_S = 600.0


@dataclass(slots=True)
class _Seen:
    """An executor: since when it is there, and since when it has instances."""

    node: str
    since_s: float
    busy_since_s: float | None = None


class NodeReturns:
    """Of one application."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: dict[str, _Seen] | None = None
        self._soon: dict[str, int] = {}  # node -> executors in a row that died soon

    def look(self, executors: Mapping[str, str], busy: Collection[str]) -> set[str]:
        """The executors to which no instance should return yet. executors: every live one and its node; busy: those
        that have instances now."""
        now_s = self._now()
        # Those of the first look are older than this: nothing waits for them.
        first_s = now_s if self._seen is not None else now_s - COLD_S
        before, self._seen = self._seen or {}, {}
        for executor, node in executors.items():
            self._seen[executor] = seen = before.pop(executor, None) or _Seen(node, first_s)
            if executor in busy and seen.busy_since_s is None:
                seen.busy_since_s = now_s
        self._count({seen.node: seen for seen in before.values() if seen.busy_since_s is not None}, now_s)
        for seen in self._seen.values():
            if seen.busy_since_s is not None and now_s - seen.busy_since_s >= SOON_S:
                self._soon.pop(seen.node, None)
        return {e for e, seen in self._seen.items() if now_s - seen.since_s < self.wait_s(seen.node)}

    def forget(self, executors: Collection[str]) -> None:
        """These end because it was ordered: that is no death."""
        for executor in executors:
            (self._seen or {}).pop(executor, None)

    def wait_s(self, node: str) -> float:
        """How long a new executor of the node is there before instances return to it. What all nodes have in common
        says nothing against one of them: instances would only crowd on the others, and on the newest executors."""
        nodes = {node, *self._soon, *(seen.node for seen in (self._seen or {}).values())}
        common = min(self._soon.get(n, 0) for n in nodes) if len(nodes) > 1 else 0
        return doubled_s(COLD_S, max(0, self._soon.get(node, 0) - common - 1), LONGEST_S)

    def held_back(self) -> dict[str, tuple[int, float]]:
        """Nodes that instances avoid for longer than usual: how many executors died soon in a row, and how many seconds
        are left; all of them while the node has no executor."""
        now_s, found = self._now(), {}
        for node, deaths in self._soon.items():
            ages_s = [now_s - seen.since_s for seen in (self._seen or {}).values() if seen.node == node]
            left_s = self.wait_s(node) - max(ages_s, default=0.0)
            if deaths > 1 and left_s > 0:
                found[node] = (deaths, left_s)
        return found

    def _count(self, lost: Mapping[str, _Seen], now_s: float) -> None:
        """One death for each node, however many of its executors were lost at once."""
        for node, seen in lost.items():
            lasted_s = now_s - (seen.busy_since_s or now_s)
            deaths = self._soon[node] = self._soon.get(node, 0) + 1 if lasted_s < SOON_S else 0
            if deaths > 1:
                log.warning(
                    "%s lost an executor %.0f s after it got instances, %d times in a row: "
                    "instances return to it %.0f s after its next executor is up",
                    node, lasted_s, deaths, self.wait_s(node),
                )  # fmt: skip
