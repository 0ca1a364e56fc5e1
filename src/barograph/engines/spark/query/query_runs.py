"""The runs of a supervised query: when one dies, the next starts from the same checkpoint.

``diagnosis`` says why a run died and whether to restart; this module restarts it, in a thread of its own. It decides no
placement: the planner seats a lost executor's instances elsewhere.
"""

import logging
import threading
import time
from collections import deque

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.bridge.query_run import EndKind, QueryRunEnd
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.orders.planned_restarts import Between
from barograph.engines.spark.query.checkpoint import checkpoint_of, require_kept_checkpoint
from barograph.engines.spark.query.diagnosis import (
    Death,
    GivenUp,
    GiveUpCode,
    RestartLimits,
    diagnose,
    give_up,
    wait_s,
)
from barograph.engines.spark.query.progress import progress_texts
from barograph.engines.spark.query.repartition import RestartRequest, split_state
from barograph.engines.spark.query.replayed import Restart, replayed
from barograph.engines.spark.query.writer_ahead import Build, WriterAhead
from barograph.model import BadInput

log = logging.getLogger(__name__)

PROGRESS_KEPT = 100
_LOOK_S = 0.05
_UP_LOOK_S = 0.2  # refreshing costs CPU that the instances need to start
_PROVEN_S = 10.0  # a query that was up for so long is restarted first and diagnosed afterwards
_FORGET_S = 5.0  # the driver drops a dead executor soon after noticing; this is the longest wait for that
_TOGETHER_S = 1.0  # new executors come together; a topology is not made smaller for the first of them
# Spark's error when it refuses to start a query whose state was being repartitioned when the driver died.
_UNFINISHED = "STREAMING_UNFINISHED_REPARTITION_DETECTED"


class QueryRuns:
    """Starts a query and restarts it until it is stopped or given up.

    query: its present run, or the last one. lock: for ``query`` and the lists. doing: for people to read. error: what
    ended it for good, None otherwise. progress: Spark's reports of earlier runs.
    """

    def __init__(self, engine: SparkEngine, build: Build, checkpoint: str | None, limits: RestartLimits) -> None:
        self._engine, self._limits = engine, limits
        self.lock = threading.RLock()
        self.ended = threading.Event()
        self.up = threading.Event()
        self.error: Exception | None = None
        self.given_up: GivenUp | None = None
        self.restarts: list[Restart] = []
        self.progress: deque[str] = deque(maxlen=PROGRESS_KEPT)
        self.doing = "running"
        self._stopping = threading.Event()
        self._deaths: list[Death] = []
        self._run_ids: set[str] = set()
        self._began_with = engine.living()[0]
        self._writers = WriterAhead(build, checkpoint)
        self.query = self._started(self._writers.take())
        require_kept_checkpoint(self.query)
        self._done_by = self._committed()
        self._up_since_s = float("inf")
        self._refused: PySparkException | BadInput | None = None
        self._request: RestartRequest | None = None
        self._requesting = threading.Lock()
        self._thread = threading.Thread(target=self._supervise, name=f"supervise-{self.topology}", daemon=True)
        engine.set_restartable(self.topology, self)
        self._thread.start()

    @property
    def run_id(self) -> str:
        return str(self.query.runId)

    @property
    def topology(self) -> str:
        """The planner's name of it: a query without a name is known by its id."""
        return str(self.query.name or f"query-{str(self.query.id)[:8]}")

    def stop(self) -> None:
        self._stopping.set()
        with self.lock:
            if self.query.isActive:
                self.query.stop()
        if threading.current_thread() is not self._thread:
            self.ended.wait()

    def repartition(self, count: int | None, between: Between | None = None) -> str:
        """See ``Restartable``. If it fails, the query goes on as it was."""
        with self._requesting:
            if not self.up.is_set():
                return f"it is not running now: {self.doing}"
            request, before = RestartRequest(count, between), self.run_id
            self._request = request
            try:
                if not self._engine.hold(self.topology):
                    return "its epoch did not end in time"
                with self.lock:
                    if self._stopping.is_set() or self.run_id != before:
                        return f"it ended meanwhile: {self.doing}"
                    self.query.stop()
                request.done.wait()
                return request.problem
            finally:
                self._request = None

    # --- below, in the thread of the supervisor ---

    def _supervise(self) -> None:
        try:
            end = self._follow()
            while end is not None and end.died and not self._stopping.is_set():
                end = self._next_run(end)
        except (Py4JError, OSError) as gone:
            log.warning("%s is supervised no more: the application has ended: %s", self.topology, gone)
            self.given_up = GivenUp(GiveUpCode.APPLICATION_ENDED, f"the Spark application has ended: {gone}")
        finally:
            self.up.clear()
            self.doing = self.given_up.text if self.given_up is not None else "stopped"
            self._engine.set_restartable(self.topology, None)
            self._writers.close()
            if self._request is not None:
                self._request.finish(f"the query has ended: {self.doing}")
            self.ended.set()

    def _started(self, writer: DataStreamWriter) -> StreamingQuery:
        query = writer.start()
        self._run_ids.add(str(query.runId))
        return query

    def _follow(self) -> QueryRunEnd | None:
        """Follow the present run, and those that requests start, until one ends without a request. Returns how."""
        end = self._await_up()
        while end is None:
            end = self._engine.await_end(self.query, 1.0)
            if end is not None and (request := self._request) is not None and not self._stopping.is_set():
                if end.died:
                    request.finish("it died while its epoch was being ended, and goes on as it was")
                else:
                    end = self._restarted(request)
        return end

    def _restarted(self, request: RestartRequest) -> QueryRunEnd | None:
        """Do what is requested while the query is stopped, and start its next run. Returns its end if it has ended."""
        self.up.clear()
        stopped, problem = self.query, ""
        try:
            if request.count is not None:
                problem = self._repartitioned(checkpoint_of(stopped), request.count)
            if request.between is not None:
                self.doing = "stopped until the plan is carried out"
                problem = request.between() or problem
            writer = self._writers.take()
            with self.lock:
                if self._stopping.is_set():
                    return None
                self._began_with = self._engine.living()[0]
                self.query = self._started(writer)
                self.progress.extend(progress_texts(stopped))
        except (PySparkException, BadInput) as refused:
            log.warning("%s could not be started again: %s; it is treated as dead", self.topology, refused)
            request.finish(f"it could not be started again: {refused}")
            return QueryRunEnd(EndKind.DIED, str(refused))
        end = self._await_up()
        if end is not None and end.died:
            problem = problem or "it died when it was started again"
        request.finish(problem)
        return end

    def _repartitioned(self, checkpoint: str, count: int) -> str:
        self.doing = f"splitting its state over {count} instances"
        return split_state(self._engine, checkpoint, count, self._stopping.wait)

    def _await_up(self) -> QueryRunEnd | None:
        """Wait until every instance of this run is up. Returns how the run ended if it ended before."""
        look_s = _UP_LOOK_S
        while not self._is_up():
            if end := self._engine.await_end(self.query, look_s):
                return end
            look_s = min(1.0, 1.1 * look_s)  # a slow start needs no frequent look
        self.up.set()
        self._up_since_s = time.monotonic()
        self.doing = "running"
        if not self._stopping.is_set():
            self._writers.prepare()
        return None

    def _is_up(self) -> bool:
        self._engine.refresh()
        epoch = self._engine.present(self.topology)
        return epoch is not None and epoch.run == self.run_id and epoch.is_up

    def _next_run(self, end: QueryRunEnd) -> QueryRunEnd | None:
        """Diagnose why a run died, start the next and follow it. Returns how that ends; None if there is no next."""
        died, at_ms, dead, began_with = time.monotonic(), int(time.time() * 1000), self.query, self._began_with
        proven, self._up_since_s = died - self._up_since_s >= _PROVEN_S, float("inf")
        self.up.clear()
        text, starting, error = end.error, False, None
        if proven and _UNFINISHED not in text:
            self.doing = "starting again"
            if not self._await_room() or not self._tried(dead):
                return None
            death = self._diagnose(text, died, str(dead.runId), began_with)
            if self._refused is not None:
                text, starting, error = str(self._refused), True, self._refused
            elif why := give_up(self._deaths, self._limits):
                self.query.stop()
                self._give_up(dead.exception() or RuntimeError(text), why)
                return None
        while self.query is dead:
            self.doing = "finding out why it died"
            death = self._diagnose(text, died, str(dead.runId), began_with, starting)
            if why := give_up(self._deaths, self._limits):
                self._give_up(error or dead.exception() or RuntimeError(text), why)
                return None
            self.doing = f"starting again: {death.text}"
            if self._stopping.wait(wait_s(self._deaths, self._limits)) or not self._await_room():
                return None
            if _UNFINISHED in text:
                root = checkpoint_of(dead)
                self._repartitioned(root, self._engine.unfinished_repartition(root))
            if not self._tried(dead):
                return None
            if self._refused is not None:
                text, starting, error = str(self._refused), True, self._refused
        next_end = self._await_up()
        # By now the last reports of the dead run are in.
        rows = replayed(self._engine, self.topology, str(dead.runId))
        with self.lock:
            self.restarts.append(Restart(at_ms, death.text, rows.epoch, time.monotonic() - died, rows))
        return next_end or self._follow()

    def _tried(self, dead: StreamingQuery) -> bool:
        """Start the next run, or note why Spark refused it. False if the query is being stopped."""
        with self.lock:
            if self._stopping.is_set():
                return False
            self._began_with, self._refused = self._engine.living()[0], None
            try:
                self.query = self._started(self._writers.take())
                self.progress.extend(progress_texts(dead))
            except (PySparkException, BadInput) as refused:
                log.warning("Spark refused to start %s: %s; it may be tried again", self.topology, refused)
                self._refused = refused
            return True

    def _diagnose(
        self, text: str, died: float, dead_run: str, began_with: tuple[str, ...], starting: bool = False
    ) -> Death:
        living = set(self._engine.living()[0])
        lost = [self._engine.where(e) for e in began_with if e not in living]
        self._engine.refresh()
        epochs = [e.epoch for e in self._engine.epochs(self.topology) if e.run == dead_run and e.planned_ms > 0]
        death = diagnose(text, died, max(epochs, default=None), lost, starting)
        committed = self._committed()
        if committed != self._done_by:  # an epoch was committed since the last death: the count starts again
            self._deaths.clear()
            self._done_by = committed
        self._deaths.append(death)
        return death

    def _committed(self) -> int | None:
        """The last epoch known to be committed, in any run: one before the latest that was planned."""
        planned = [e.epoch for e in self._engine.epochs(self.topology) if e.run in self._run_ids and e.planned_ms > 0]
        return max(planned) - 1 if planned else None

    def _await_room(self) -> bool:
        """Wait until no dead executor is counted and there are seats for all instances, or for the fewest it can run
        with. False if it is stopped meanwhile."""
        deadline = time.monotonic() + _FORGET_S
        while self._engine.living()[1] and time.monotonic() < deadline:
            if self._stopping.wait(_LOOK_S):
                return False
        began = time.monotonic()
        while (waited_s := time.monotonic() - began) < self._limits.patience_s:
            free = self._engine.free_seats(self.topology)
            # Without any seat, fewer instances do not help.
            needed = self._engine.fit(self.topology, free if free and waited_s > _TOGETHER_S else None)
            if needed <= free:
                break
            self.doing = f"waiting for seats: {needed} instances need one each and {free} are free"
            if self._stopping.wait(_LOOK_S):
                return False
        self.doing = "starting again"
        return True

    def _give_up(self, error: Exception, why: GivenUp) -> None:
        self.given_up = why
        error.add_note(f"not started again: {why.text}")
        self.error = error
