"""The runs of a supervised query: when one dies, the next starts from the same checkpoint.

``diagnosis`` says why a run died and whether to restart; this module restarts it, in a thread of its own. It decides no
placement: the planner seats a lost executor's instances elsewhere.
"""

import logging
import threading
import time
from collections import deque
from functools import partial

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.bridge.query_run import EndKind, QueryRunEnd
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.orders.planned_restarts import Between
from barograph.engines.spark.query.checkpoint import checkpoint_of, require_kept_checkpoint
from barograph.engines.spark.query.early_commit import EarlyCommit
from barograph.engines.spark.query.failures.diagnosis import Death, GivenUp, GiveUpCode, RestartLimits, ended_by
from barograph.engines.spark.query.failures.ownership import other_owner
from barograph.engines.spark.query.failures.patience import Patience
from barograph.engines.spark.query.failures.post_mortem import PostMortem, error_of
from barograph.engines.spark.query.naming import topology_name
from barograph.engines.spark.query.progress import progress_texts
from barograph.engines.spark.query.repartition import RestartRequest, split_state
from barograph.engines.spark.query.replayed import Restart, replayed
from barograph.engines.spark.query.requested_restarts import RequestedRestarts
from barograph.engines.spark.query.start.first_size import FirstSize, SizeChoice
from barograph.engines.spark.query.start.prepared_start import PreparedStart
from barograph.engines.spark.query.start.room import await_room
from barograph.engines.spark.query.start.run_start import started_run, stop_anyway
from barograph.engines.spark.query.start.writer_ahead import Build, WriterAhead
from barograph.engines.spark.tolerated import tolerated

log = logging.getLogger(__name__)

PROGRESS_KEPT = 100
_UP_LOOK_S = 0.2  # refreshing costs CPU that the instances need to start
_PROVEN_S = 10.0  # a query that was up for so long is restarted first and diagnosed afterwards
# Spark's error when it refuses to start a query whose state was being repartitioned when the driver died.
_UNFINISHED = "STREAMING_UNFINISHED_REPARTITION_DETECTED"


class QueryRuns:
    """Starts a query and restarts it until it is stopped or given up.

    query: its present run, or the last one; run_id: Spark's id of that. topology: the planner's name of it; a query
    without a name is known by its id. lock: for ``query`` and the lists. doing: for people to read. error: what ended
    it for good, None while it runs and where it was stopped. progress: Spark's reports of earlier runs.
    """

    def __init__(
        self, engine: SparkEngine, build: Build, checkpoint: str | None, limits: RestartLimits, size: SizeChoice
    ) -> None:
        self._engine, self._limits = engine, limits
        self.lock, self.ended, self.up = threading.RLock(), threading.Event(), threading.Event()
        self.error: Exception | None = None
        self.given_up: GivenUp | None = None
        self.restarts: list[Restart] = []
        self.progress: deque[str] = deque(maxlen=PROGRESS_KEPT)
        self.doing, self.stopping = "running", threading.Event()
        self._deaths, self._patience = PostMortem(engine, limits), Patience(engine.lives, self.stopping.wait, limits)
        self._began_with = engine.living()[0]
        self._writers = WriterAhead(build, checkpoint)
        self._first_size = FirstSize(engine, self.stopping.wait, size)
        self.run_id = self.topology = self._checkpoint = ""
        self._up_since_s = float("inf")
        self._refused: Exception | None = None
        self._requests = RequestedRestarts(engine, self)
        self.query = self._started(self._writers.take())
        try:
            self.topology = topology_name(self.query.name, str(self.query.id))
            require_kept_checkpoint(self.query)
            self._checkpoint = checkpoint_of(self.query)
            engine.keep_lease(self._checkpoint, True)
            self._early = EarlyCommit(engine, self.topology)
            self._thread = threading.Thread(target=self._supervise, name=f"supervise-{self.topology}", daemon=True)
            engine.set_restartable(self.topology, self)
            self._thread.start()
        except BaseException:  # else it would run on, with nothing that supervises it
            self.stopping.set()
            stop_anyway(self.query, self.topology or "a query that has just started")
            self._over()
            raise

    def stop(self) -> None:
        self.stopping.set()
        with self.lock:
            if self.query.isActive:
                self.query.stop()
        if threading.current_thread() is not self._thread:
            self.ended.wait()

    def repartition(self, count: int | None, between: Between | None = None) -> str:
        """See ``Restartable``. If it fails, the query goes on as it was."""
        return self._requests.ask(count, between)

    # --- below, in the thread of the supervisor ---

    def _supervise(self) -> None:
        try:
            end = self._follow()
            while end is not None and end.died and not self.stopping.is_set():
                end = self._next_run(end)
        except Exception as error:  # noqa: BLE001  # whatever ends the supervision, the program must learn of it
            self._end_by(error)
        finally:
            self._over()

    def _over(self) -> None:
        """It has ended for good. The program and requests learn of it whatever else fails: they wait for it."""
        try:
            self.up.clear()
            self.doing = self.given_up.text if self.given_up is not None else "stopped"
            with tolerated(log, f"{self.topology} still counts as one that can be restarted", Exception):
                self._engine.set_restartable(self.topology, None)
            with tolerated(log, f"{self.topology}: what makes its writers was not ended", Exception):
                self._writers.close()
            if self._checkpoint:
                with tolerated(log, f"{self.topology}: its lease was not given back", Exception):
                    self._engine.keep_lease(self._checkpoint, False)
        finally:
            self.ended.set()
            if (request := self._requests.present) is not None:
                request.finish(f"the query has ended: {self.doing}")

    def _end_by(self, error: Exception) -> None:
        """The supervision itself has failed."""
        if self.stopping.is_set():  # it was to end anyway
            log.warning("%s was stopped, and its supervision failed meanwhile: %s", self.topology, error)
            return
        if not self._engine.lives():
            why = GivenUp(GiveUpCode.APPLICATION_ENDED, f"the Spark application has ended: {error}")
        else:
            why = GivenUp(GiveUpCode.SUPERVISION_FAILED, f"its supervision failed: {type(error).__name__}: {error}")
            stop_anyway(self.query, self.topology)
        self._give_up(error, why)

    def _started(self, writer: DataStreamWriter | PreparedStart) -> StreamingQuery:
        query, self.run_id = started_run(writer, self._first_size)
        self._deaths.runs.add(self.run_id)
        return query

    def _start_after(self, stopped: StreamingQuery) -> Exception | None:
        """Start the next run. Returns why it could not be started; raises if the application has ended."""
        try:
            self._began_with = self._engine.living()[0]
            self.query = self._started(self._writers.take())
        except Exception as error:  # the program's own function builds it and may raise anything
            if not self._engine.lives():
                raise
            log.warning("%s could not be started again: %s; it may be tried again", self.topology, error)
            return error
        with tolerated(log, f"{self.topology}: reports of its last run are lost", Exception):
            self.progress.extend(progress_texts(stopped))
        return None

    def _follow(self) -> QueryRunEnd | None:
        """Follow the present run, and those that requests start, until one ends without a request. Returns how."""
        end = self._await_up()  # a request may stop it as soon as it is up
        while True:
            while end is None:
                look_s = self._patience.ask(lambda: self._early.look(self.run_id))
                end = self._patience.ask(partial(self._engine.await_end, self.query, look_s))
            request = self._requests.present
            if self.stopping.is_set() or request is None or request.done.is_set():
                return self._requests.judged(end, self.run_id)
            if end.died:
                request.finish("it died while its epoch was being ended, and goes on as it was", died=True)
                return end
            if (end := self._restarted(request)) is None and self.stopping.is_set():
                return None

    def _restarted(self, request: RestartRequest) -> QueryRunEnd | None:
        """Do what is requested while the query is stopped, and start its next run. Returns its end if it has ended."""
        self.up.clear()
        stopped, problem = self.query, ""
        if request.count is not None:
            problem = self._repartitioned(checkpoint_of(stopped), request.count)
        if request.between is not None:
            self.doing = "stopped until the plan is carried out"
            try:
                problem = request.between() or problem
            except Exception as error:  # noqa: BLE001  # the query starts again whatever became of the plan
                problem = f"what was to be done while it was down failed: {type(error).__name__}: {error}"
                log.warning("%s is started again: %s", self.topology, problem)
        with self.lock:
            if self.stopping.is_set():
                return None
            refused = self._start_after(stopped)
        if refused is not None:
            request.finish(f"it could not be started again: {refused}")
            self._refused = refused
            return QueryRunEnd(EndKind.DIED, str(refused))
        if (end := self._await_up()) is not None and end.died:
            problem = problem or "it died when it was started again"
        request.finish(problem)
        return end

    def _repartitioned(self, checkpoint: str, count: int) -> str:
        self.doing = f"splitting its state over {count} instances"
        return split_state(self._engine, checkpoint, count, self.stopping.wait, self._patience.ask)

    def _await_up(self) -> QueryRunEnd | None:
        """Wait until every instance of this run is up. Returns how the run ended if it ended before."""
        look_s, began_s = _UP_LOOK_S, time.monotonic()
        while not self._patience.ask(self._is_up):
            if end := self._patience.ask(partial(self._engine.await_end, self.query, look_s)):
                return end
            if end := self._patience.ask(lambda: self._deaths.in_vain(self.topology, time.monotonic() - began_s)):
                self.query.stop()
                return end
            look_s = min(1.0, 1.1 * look_s)  # a slow start needs no frequent look
        self._deaths.was_up = True
        self.up.set()
        self._up_since_s = time.monotonic()
        self.doing = "running"
        if not self.stopping.is_set():
            self._writers.prepare()
        return None

    def _is_up(self) -> bool:
        self._engine.refresh()
        return (epoch := self._engine.present(self.topology)) is not None and epoch.run == self.run_id and epoch.is_up

    def _next_run(self, end: QueryRunEnd) -> QueryRunEnd | None:
        """Diagnose why a run died, start the next and follow it. Returns how that ends; None if there is no next."""
        died, at_ms = time.monotonic(), int(time.time() * 1000)
        dead, dead_run, began_with = self.query, self.run_id, self._began_with
        proven, self._up_since_s = died - self._up_since_s >= _PROVEN_S, float("inf")
        self.up.clear()
        text, refused, self._refused = end.error, self._refused, None

        def examine(refused: Exception | None) -> Death:
            when_s = died if refused is None else time.monotonic()
            known = (self.topology, text, when_s, dead_run, began_with, refused)
            return self._patience.ask(lambda: self._deaths.examine(*known))

        if proven and refused is None and _UNFINISHED not in text and not other_owner(text):
            self.doing = "starting again"
            if not self._await_room() or not self._tried(dead):
                return None
            death = examine(None)
            if why := self._deaths.why_given_up():
                if self.query is not dead:
                    self.query.stop()
                self._give_up(error_of(dead, text), why)
                return None
            refused = self._refused
        while self.query is dead:
            self.doing = "finding out why it died"
            death = examine(refused)
            chosen = partial(self._first_size.chosen_after, death, self.topology)
            if not self._deaths.was_up and self._patience.ask(chosen):
                self._deaths.forget()
                return self._follow() if self._tried(dead) else None
            if why := self._deaths.why_given_up():
                self._give_up(refused or error_of(dead, text), why)
                return None
            self.doing = f"starting again: {death.text}"
            if self.stopping.wait(self._deaths.wait_s()) or not self._await_room(death.needed_seats):
                return None
            if _UNFINISHED in (text if refused is None else str(refused)):
                root = checkpoint_of(dead)
                self._repartitioned(root, self._patience.ask(partial(self._engine.unfinished_repartition, root)))
            if not self._tried(dead):
                return None
            refused = self._refused
        next_end = self._await_up()
        rows = self._patience.ask(lambda: replayed(self._engine, self.topology, dead_run))  # its last reports are in
        self._early.died(dead_run, rows)
        with self.lock:
            self.restarts.append(Restart(at_ms, death.text, rows.epoch, time.monotonic() - died, rows))
        log.info("%s runs again %s", self.topology, self.restarts[-1].told())
        return next_end or self._follow()

    def _tried(self, dead: StreamingQuery) -> bool:
        """Start the next run, or note why it could not be started. False if the query is being stopped."""
        with self.lock:
            if self.stopping.is_set():
                return False
            self._refused = self._start_after(dead)
            return True

    def _await_room(self, at_least: int = 0) -> bool:
        room = partial(await_room, self._engine, self.topology, self._limits.patience_s, self.stopping.wait, self._say)
        if not self._patience.ask(partial(room, at_least)):
            return False
        self._say("starting again")
        return True

    def _say(self, doing: str) -> None:
        self.doing = doing

    def _give_up(self, error: Exception, why: GivenUp) -> None:
        own = why.code is GiveUpCode.SUPERVISION_FAILED  # its traceback is told nowhere else
        log.error("%s is supervised no more: %s", self.topology, why.text, exc_info=error if own else None)
        self.given_up, self.error = why, ended_by(self.topology, error, why)
