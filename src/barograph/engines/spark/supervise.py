"""A query that is kept alive: when one life of it dies, the next one starts from the same checkpoint.

``diagnosis`` says why it died and whether to go on; this does it. The handle is the query as its program knows it: it
lives through all lives, and ends only when it is stopped or given up. Nothing of placement is decided here: the planner
seats a lost executor's instances elsewhere.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.diagnosis import BUG, Death, Limits, diagnose, give_up, wait_s
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.kept_checkpoint import checkpoint_of, require_kept_checkpoint
from barograph.engines.spark.progress import read_progress, told_progress
from barograph.engines.spark.replayed import Replayed, replayed
from barograph.engines.spark.splitting import Wish, split_state
from barograph.engines.spark.turns import Between
from barograph.model import BadInput

Build = Callable[[], DataStreamWriter]
_DIED = "died: "
_LOOK_S = 0.05
_UP_LOOK_S = 0.2  # to look costs CPU that the instances need to start
_PROVEN_S = 10.0  # who ran for so long is started again first and diagnosed then
_FORGET_S = 5.0  # the driver drops a dead executor within moments of noticing; longer than this it is not waited for
_TOGETHER_S = 1.0  # executors that come come together; a topology is not made smaller for the first of them
_PROGRESS_KEPT = 100
# How Spark refuses to start a query whose state was being repartitioned when the driver died.
_UNFINISHED = "STREAMING_UNFINISHED_REPARTITION_DETECTED"


@dataclass(frozen=True, slots=True)
class Restart:
    """One death and what followed. at_ms: since 1970. down_s: from the death's notice until every instance of the next
    life runs. rows: what the dead life had read and put out since its last commit, which is read and put out again."""

    at_ms: int
    cause: str
    epoch: int | None
    down_s: float
    rows: Replayed


class Supervised:
    """A query that survives. Like Spark's StreamingQuery, but of all its lives: see ``Supervisor.start``."""

    def __init__(self, engine: SparkEngine, build: Build, checkpoint: str | None, limits: Limits) -> None:
        self._engine, self._build, self._checkpoint, self._limits = engine, build, checkpoint, limits
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._up = threading.Event()
        self._error: Exception | None = None
        self._deaths: list[Death] = []
        self._restarts: list[Restart] = []
        self._progress: deque[str] = deque(maxlen=_PROGRESS_KEPT)  # of earlier lives, as Spark tells it
        self._runs: set[str] = set()
        self._began_with = self._engine.living()[0]
        self._writing = ThreadPoolExecutor(1, "spare-writer")
        self._spare: Future[DataStreamWriter] | None = None
        self._query = self._begin()
        require_kept_checkpoint(self._query)
        self._done_by = self._committed()
        self._up_since_s = float("inf")
        self._refused: PySparkException | BadInput | None = None
        self._wish: Wish | None = None
        self._wishing = threading.Lock()
        self.gave_up_because = ""
        self.doing = "running"
        self._keeper = threading.Thread(target=self._keep, name=f"keep-{self.topology}", daemon=True)
        engine.keep(self.topology, self)
        self._keeper.start()

    # --- what a program knows of a query ---

    @property
    def id(self) -> str:
        """The same in all lives: it is kept in the checkpoint."""
        return str(self._query.id)

    @property
    def runId(self) -> str:  # noqa: N802  # Spark's name
        """Of the present life, or the last one."""
        return str(self._query.runId)

    @property
    def name(self) -> str | None:
        return self._query.name

    @property
    def isActive(self) -> bool:  # noqa: N802  # Spark's name
        """Until it is stopped or given up; also between two lives."""
        return not self._ended.is_set()

    @property
    def status(self) -> dict[str, Any]:
        return dict(self._query.status)

    @property
    def lastProgress(self) -> Any:  # noqa: N802  # Spark's name
        """Of the latest epoch that ended, whichever life it was in."""
        with self._lock:
            return self._query.lastProgress or (read_progress(self._progress[-1]) if self._progress else None)

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802  # Spark's name
        with self._lock:
            return [*map(read_progress, self._progress), *self._query.recentProgress][-_PROGRESS_KEPT:]

    def exception(self) -> Exception | None:
        """What ended it for good; None as long as it lives, is being started again, or was stopped."""
        return self._error

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802  # Spark's name
        """Wait until it is stopped (True), the time is over (False), or it is given up (raises what ended it)."""
        ended = self._ended.wait(timeout)
        if self._error is not None:
            raise self._error
        return None if timeout is None else ended

    def processAllAvailable(self) -> None:  # noqa: N802  # Spark's name
        self._query.processAllAvailable()

    def explain(self, extended: bool = False) -> None:
        self._query.explain(extended)

    def stop(self) -> None:
        """End it for good. It is over when this returns."""
        self._stopping.set()
        with self._lock:
            if self._query.isActive:
                self._query.stop()
        if threading.current_thread() is not self._keeper:
            self._ended.wait()

    # --- what a supervisor knows besides ---

    @property
    def topology(self) -> str:
        """What the planner calls it: a query without a name is known by its id."""
        return str(self._query.name or f"query-{self.id[:8]}")

    @property
    def restarts(self) -> tuple[Restart, ...]:
        with self._lock:
            return tuple(self._restarts)

    @property
    def present(self) -> StreamingQuery:
        """The life there is now, or was last."""
        return self._query

    def await_up(self, timeout_s: float) -> bool:
        """Whether a life of it runs, every instance in its seat, within the time."""
        deadline = time.monotonic() + timeout_s
        while not self._up.wait(0.05):
            if self._ended.is_set() or time.monotonic() > deadline:
                return False
        return True

    def repartition(self, count: int | None, between: Between | None = None) -> str:
        """Stop it between two epochs, split its state over so many instances, start it again; None: only start again.

        between: done while it is down. Empty when every instance of the next life runs; else why not, and the query
        goes on as it was."""
        with self._wishing:
            if not self._up.is_set():
                return f"it does not run just now: {self.doing}"
            wish, before = Wish(count, between), self.runId
            self._wish = wish
            try:
                if not self._engine.hold(self.topology):
                    return "its epoch did not end in time"
                with self._lock:
                    if self._stopping.is_set() or self.runId != before:
                        return f"it ended meanwhile: {self.doing}"
                    self._query.stop()
                wish.done.wait()
                return wish.problem
            finally:
                self._wish = None

    # --- its lives ---

    def _begin(self) -> StreamingQuery:
        return self._started(self._spare_or_new())

    def _spare_or_new(self) -> DataStreamWriter:
        """The writer that was made ahead, if it is there: to make one takes many calls, while the query is down."""
        spare, self._spare = self._spare, None
        if spare is not None and spare.done() and not spare.cancelled() and spare.exception() is None:
            return spare.result()
        return self._written()

    def _make_spare(self) -> None:
        if self._spare is None and not self._stopping.is_set():
            self._spare = self._writing.submit(self._written)

    def _written(self) -> DataStreamWriter:
        writer = self._build()
        if not isinstance(writer, DataStreamWriter):
            raise BadInput(f"the function must return a DataStreamWriter, not {type(writer).__name__}; do not start it")
        if self._checkpoint is not None:
            writer = writer.option("checkpointLocation", self._checkpoint)
        return writer

    def _started(self, writer: DataStreamWriter) -> StreamingQuery:
        query = writer.start()
        self._runs.add(str(query.runId))
        return query

    def _keep(self) -> None:
        try:
            end = self._live()
            while end.startswith(_DIED) and not self._stopping.is_set():
                end = self._next_life(end)
        except (Py4JError, OSError) as gone:  # the application itself has ended
            self.gave_up_because = f"the Spark application has ended: {gone}"
        finally:
            self._up.clear()
            self.doing = self.gave_up_because or "stopped"
            self._engine.keep(self.topology, None)
            self._writing.shutdown(wait=False, cancel_futures=True)
            if self._wish is not None:
                self._wish.grant(f"the query has ended: {self.doing}")
            self._ended.set()

    def _live(self) -> str:
        """From the start of a life to its end: how it ended."""
        end = self._await_up()
        while not end:
            end = self._engine.await_end(self._query, 1.0)
            if end and (wish := self._wish) is not None and not self._stopping.is_set():
                if end.startswith(_DIED):
                    wish.grant("it died while its epoch was being ended, and goes on as it was")
                else:
                    end = self._turned(wish)
        return end

    def _turned(self, wish: Wish) -> str:
        """It was stopped to be started again: repartition, and the next life. How that one ended if it already has."""
        self._up.clear()
        stopped, problem = self._query, ""
        try:
            if wish.count is not None:
                problem = self._repartitioned(checkpoint_of(stopped), wish.count)
            if wish.between is not None:
                self.doing = "down, while something else is done"
                problem = wish.between() or problem
            writer = self._spare_or_new()
            with self._lock:
                if self._stopping.is_set():
                    return ""
                self._began_with = self._engine.living()[0]
                self._query = self._started(writer)
                self._progress.extend(told_progress(stopped))
        except (PySparkException, BadInput) as refused:
            wish.grant(f"it could not be started again: {refused}")
            return f"{_DIED}{refused}"
        end = self._await_up()
        if end.startswith(_DIED):
            problem = problem or "it died when it was started again"
        wish.grant(problem)
        return end

    def _repartitioned(self, checkpoint: str, count: int) -> str:
        self.doing = f"splitting its state over {count} instances"
        return split_state(self._engine, checkpoint, count, self._stopping.wait)

    def _await_up(self) -> str:
        """Until every instance of this life runs; how the life ended if it ended before."""
        look_s = _UP_LOOK_S
        while not self._is_up():
            if end := self._engine.await_end(self._query, look_s):
                return end
            look_s = min(1.0, 1.1 * look_s)  # what takes long needs no quick eye
        self._up.set()
        self._up_since_s = time.monotonic()
        self.doing = "running"
        self._make_spare()
        return ""

    def _is_up(self) -> bool:
        self._engine.refresh()
        epoch = self._engine.sight.present(self.topology)
        return epoch is not None and epoch.run == self.runId and epoch.is_up

    def _next_life(self, end: str) -> str:
        """Find out why a life ended, begin the next, and live it: how that one ends. Until then every step counts."""
        died, at_ms, dead, began_with = time.monotonic(), int(time.time() * 1000), self._query, self._began_with
        proven, self._up_since_s = died - self._up_since_s >= _PROVEN_S, float("inf")
        self._up.clear()
        text, starting, error = end.removeprefix(_DIED), False, None
        if proven and _UNFINISHED not in text:
            self.doing = "starting again"
            if not self._await_room() or not self._tried(dead):
                return ""
            death = self._diagnose(text, died, str(dead.runId), began_with)
            if self._refused is not None:
                text, starting, error = str(self._refused), True, self._refused
            elif why := give_up(self._deaths, self._limits):
                self._query.stop()
                self._give_up(dead.exception() or RuntimeError(text), why)
                return ""
        while self._query is dead:
            self.doing = "finding out why it died"
            death = self._diagnose(text, died, str(dead.runId), began_with, starting)
            if why := give_up(self._deaths, self._limits):
                self._give_up(error or dead.exception() or RuntimeError(text), why)
                return ""
            self.doing = f"starting again: {death.text}"
            if self._stopping.wait(wait_s(self._deaths, self._limits)) or not self._await_room():
                return ""
            if _UNFINISHED in text:
                root = checkpoint_of(dead)
                self._repartitioned(root, self._engine.unfinished_repartition(root))
            if not self._tried(dead):
                return ""
            if self._refused is not None:
                text, starting, error = str(self._refused), True, self._refused
        end = self._await_up()
        # By now the last reports of the dead life are in.
        rows = replayed(self._engine, self.topology, str(dead.runId))
        with self._lock:
            self._restarts.append(Restart(at_ms, death.text, rows.epoch, time.monotonic() - died, rows))
        return end or self._live()

    def _tried(self, dead: StreamingQuery) -> bool:
        """Begin the next life, or keep why Spark refused it; False when the query is being stopped."""
        with self._lock:
            if self._stopping.is_set():
                return False
            self._began_with, self._refused = self._engine.living()[0], None
            try:
                self._query = self._begin()
                self._progress.extend(told_progress(dead))
            except (PySparkException, BadInput) as refused:
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
        if committed != self._done_by:  # something got done since the last death: the count begins anew
            self._deaths.clear()
            self._done_by = committed
        self._deaths.append(death)
        return death

    def _committed(self) -> int | None:
        """The last epoch known to be committed, in whichever life: one before the latest that was planned."""
        planned = [e.epoch for e in self._engine.epochs(self.topology) if e.run in self._runs and e.planned_ms > 0]
        return max(planned) - 1 if planned else None

    def _await_room(self) -> bool:
        """Wait until no dead executor is counted and there are seats for all, or for as many as it can do with; False
        when stopped meanwhile."""
        deadline = time.monotonic() + _FORGET_S
        while self._engine.living()[1] and time.monotonic() < deadline:
            if self._stopping.wait(_LOOK_S):
                return False
        began = time.monotonic()
        while (waited_s := time.monotonic() - began) < self._limits.patience_s:
            free = self._engine.free_seats(self.topology)
            # Without any seat it is not a matter of fewer instances.
            needed = self._engine.fit(self.topology, free if free and waited_s > _TOGETHER_S else None)
            if needed <= free:
                break
            self.doing = f"waiting for seats: {needed} instances need one each and {free} are free"
            if self._stopping.wait(_LOOK_S):
                return False
        self.doing = "starting again"
        return True

    def _give_up(self, error: Exception, why: str) -> None:
        self.gave_up_because = why
        error.add_note(f"not started again: {why}")
        self._error = error

    @property
    def is_bug(self) -> bool:
        """Whether it was given up because of a bug in the query, not because of the cluster."""
        return self.gave_up_because.startswith(BUG)
