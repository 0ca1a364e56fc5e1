"""Executors that a cluster manager gives: standalone, YARN or Kubernetes. It is told how many are wanted, which end.

Where an executor comes up is the cluster manager's choice, so a released node that is wanted again means one executor
more for each that it had, wherever there is room. A standalone master takes the worker with most free cores, which is
mostly the released one.
"""

from collections.abc import Callable, Collection

from barograph.engines.spark.executors.port import ExecutorBounds, ExecutorRequests, KeptNode
from barograph.model import RefusalCode


class RequestedExecutors:
    """Of one application. live: how many there are now. begun_with: how many the cluster manager was asked for when the
    application began; None: one wherever there is room, as on a standalone cluster."""

    def __init__(
        self, requests: ExecutorRequests, live: Callable[[], int], begun_with: int | None, bounds: ExecutorBounds
    ) -> None:
        self._requests, self._live, self.bounds = requests, live, bounds
        self.target = begun_with
        self._unbounded = begun_with is None and bounds.most is None
        self._ceiling = bounds.most or begun_with or 0  # how many there may be
        self._released: dict[str, int] = {}  # node -> executors that it had
        if begun_with is None and bounds.most is not None:
            self._order(bounds.most)

    def released(self) -> tuple[str, ...]:
        return tuple(self._released)

    def more(self, there: Collection[str]) -> int:
        if self.target is None:
            return 0
        return max(0, self._ceiling - self.target - sum(n for node, n in self._released.items() if node not in there))

    def want(self, count: int, node: str = "") -> None:
        self._released.pop(node, None)
        self._order(None if self._unbounded and not self._released else count)

    def release(self, node: str, ids: Collection[str]) -> KeptNode | None:
        if not ids:
            return KeptNode(RefusalCode.NO_WORKER, "it has no executor")
        now = self._live() if self.target is None else self.target
        if not self._requests.end_idle(ids, now - len(ids)):
            self._requests.want_executors(self.target)
            return KeptNode(RefusalCode.NODE_IN_USE, "a task runs there")
        self.target, self._ceiling = now - len(ids), max(self._ceiling, now)
        self._released[node] = len(ids)
        return None

    def settle(self) -> None:
        """The cluster manager ends them by itself."""

    def close(self) -> None:
        """They end with the application."""

    def _order(self, count: int | None) -> None:
        self.target = count
        self._requests.want_executors(count)
