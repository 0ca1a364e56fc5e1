"""What supervised queries ask of their application: end an epoch and begin no other, split the state of a query.

A query that is stopped between two epochs repeats no row. When that is done is decided elsewhere.
"""

from collections.abc import Collection

from barograph.engines.spark.bridge.reports import GrownTopic, LastReport
from barograph.engines.spark.observer import Observer
from barograph.model import Snapshot

# An epoch ends when all rows that were sent are processed; under heavy overload that takes a while.
COMMIT_TIMEOUT_S = 120.0
WARM_S = 2.0  # the longest a warm cut prepares its targets; what is not read by then is read after the cut
HOLD_S = 60.0  # the longest a topology is held between two epochs
LEAVING_S = 1.5  # the supervisor asks for reports once a second; each further call costs the driver CPU


class QueryControl(Observer):
    """Of one Spark application."""

    commit_timeout_s = COMMIT_TIMEOUT_S
    """How long the end of an epoch is waited for."""
    _leaving: tuple[float, tuple[str, ...]] = (float("-inf"), ())
    """When it was asked, and the executors that were leaving then."""

    def lives(self) -> bool:
        """Whether the Spark application still runs."""
        return self._bridge.lives()

    def can_grow(self) -> bool:
        """Whether more executors may come."""
        return not self._bridge.is_local()

    def cluster(self) -> Snapshot:
        """The cluster and the topologies as they are now, without metrics."""
        with self._lock:
            self.refresh()
            return self._snapshot(self._now() - self._born, 1.0)

    def stillborn(self) -> str:
        """Why executors end as they start; empty if they do not."""
        return self._bridge.stillborn()

    def end_idle(self, ids: Collection[str], left: int | None) -> bool:
        """End these executors, unless one of them runs a task. left: how many are wanted from now on; None: the
        others that live now."""
        return self._bridge.release(ids, left)

    def want_executors(self, count: int | None) -> None:
        """None: one wherever there is room, as a standalone cluster gives at the start."""
        self._bridge.want(count)

    def last_reports(self) -> dict[str, LastReport]:
        """Of live executors that have reported."""
        reports, leaving = self._bridge.last_reports()
        self._leaving = self._now(), leaving
        return reports

    def leaving(self) -> tuple[str, ...]:
        """Executors that were decommissioned: they end by themselves once they run no task, and get none any more. As
        of the last look at reports, unless that is long ago."""
        if self._now() - self._leaving[0] >= LEAVING_S:
            self.last_reports()
        return self._leaving[1]

    def grown_topics(self) -> list[GrownTopic]:
        """Topics that have more partitions by now than a present epoch reads."""
        return self._bridge.grown_topics()

    def seated_on(self, executors: Collection[str]) -> dict[str, int]:
        """Topologies with instances on one of these, and their present epochs."""
        with self._lock:
            self.refresh()
            present = {name: self._telemetry.present(name) for name in self._telemetry.topologies}
        found = {name: epoch for name, epoch in present.items() if epoch is not None}
        return {n: e.epoch for n, e in found.items() if any(s.executor in executors for s in e.seated.values())}

    def make_way(self, topology: str) -> int:
        """A warm cut: executors to which instances will move prepare, then the epoch ends. Nothing is ordered: the
        instances return when an executor takes the slot that they had. Returns how many move."""
        moves = self._bridge.foresee(topology)
        if moves:
            self._bridge.warm(topology, moves, WARM_S)
        self.end_epoch(topology)
        return len(moves)

    def avoid(self, executors: Collection[str]) -> None:
        """Exactly these get no instances from the next epoch on, if the others have seats enough."""
        self._bridge.avoid(executors)

    def supervised_runs(self) -> dict[str, tuple[str, ...]]:
        """Runs of supervised queries, and the executor of each instance, as of the last look."""
        with self._lock:
            present = [self._telemetry.present(name) for name in self._telemetry.restartable]
            return {e.run: tuple(s.executor for s in e.seated.values()) for e in present if e is not None}

    def seats_without(self, executors: Collection[str]) -> int:
        """Seats of all other executors."""
        return sum(e.seats for e in self._telemetry.executors if e.id not in executors)

    def end_run(self, run: str, why: str) -> None:
        """End a query run as if it had failed for this reason."""
        self._bridge.end_run(run, why)

    def end_epoch(self, topology: str) -> None:
        """Cut the present epoch, and do not wait for its end. Nothing else changes."""
        self._bridge.order({}, [topology])

    def hold(self, topology: str) -> bool:
        """End the present epoch and begin no other. False if that did not happen in time, and then the next epoch
        begins as usual."""
        try:
            ending = self._bridge.order({}, [topology], {topology: HOLD_S})
            return bool(ending) and self._bridge.await_held(topology, min(self.commit_timeout_s, HOLD_S))
        except BaseException:  # an order whose answer is missing may have been taken
            self.release_hold(topology)
            raise

    def release_hold(self, topology: str) -> None:
        """A topology that is held, or is to be held, goes on."""
        self._bridge.release_hold(topology)

    def repartition(self, checkpoint: str, count: int) -> str:
        """Split the state of a stopped query over ``count`` instances. Returns "" when done, else why not."""
        return self._bridge.repartition(checkpoint, count)

    def keep_lease(self, checkpoint: str, is_kept: bool) -> None:
        """Whether the lease on a checkpoint stays when its query ends, because it may be started again."""
        self._bridge.keep_lease(checkpoint, is_kept)

    def unfinished_repartition(self, checkpoint: str) -> int:
        return self._bridge.unfinished_repartition(checkpoint)

    def undo_repartition(self, checkpoint: str) -> str:
        return self._bridge.undo_repartition(checkpoint)
