"""One run of a workload on a real cluster: start, watch, act at the ordered seconds, drain, judge.

It decides no placement of its own: the first one is the policy's, the rest are the user's orders.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.latency import Histogram
from barograph.engines.spark.checkpoint import committed_offsets
from barograph.engines.spark.conf import in_flight, plugin_settings
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.session import await_executors, open_session, real_time
from barograph.engines.spark.share_groups import shares_of
from barograph.engines.spark.shares import Shares
from barograph.engines.spark.supervise import Restart, Supervised
from barograph.engines.spark.supervisor import Supervisor
from barograph.experiments.actions import Action, Blow, plan_of
from barograph.experiments.blows import strike
from barograph.experiments.degradation import degradation, stops_of
from barograph.experiments.journal import Journal
from barograph.experiments.live import LiveLine
from barograph.experiments.pauses import longest, pauses
from barograph.experiments.place import Place, open_place
from barograph.experiments.repeats import RestartReport, first_time_output
from barograph.experiments.report import CLOCKS, ActionReport, RunReport
from barograph.experiments.run_settings import RunSettings, check
from barograph.experiments.steering import Steered, steered
from barograph.experiments.unsteered import Watched
from barograph.experiments.verdict import judge
from barograph.experiments.warm import RunFailed, require_alive, warm_up
from barograph.model import (
    Allotment,
    BadInput,
    Demand,
    MigrationMode,
    OperatorDemand,
    Outcome,
    Placement,
    Snapshot,
    Topology,
)
from barograph.place.even import even
from barograph.priority.served import serve
from barograph.workloads import wordcount
from barograph.workloads.replay import Replay
from barograph.workloads.truth import truth_by_spark

# Between the query's start and the first row: the executors, warm by then, launch the tasks.
LEAD_S = 4.0


def run(
    settings: RunSettings,
    show: Callable[[LiveLine], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    tamper: Callable[[DataFrame], DataFrame] = lambda words: words,
) -> RunReport:
    """Everything from an empty machine to the verdict; what was started is ended, whatever happens."""
    check(settings)
    with ExitStack() as ending:
        place = open_place(settings.cluster, settings.master, ending, say)
        say("starting Spark")
        bounded = in_flight(settings.in_flight_s)
        spark = open_session("barograph run", plugin_settings(), place.conf, bounded)
        ending.callback(spark.stop)
        await_executors(spark, place.executors())
        shares = None
        if settings.steering is not None and settings.steering.enforce:
            shares = Shares(ending.enter_context(shares_of(place.run, say)))
        supervisor = Supervisor(
            spark, engine=SparkEngine(spark, place.nodes, timeout_s=settings.timeout_s, shares=shares)
        )
        ending.callback(supervisor.close)
        serve(supervisor)
        journal = Journal(settings.journal)
        checkpoint = settings.checkpoint
        if checkpoint is None:
            checkpoint = Path(tempfile.mkdtemp(prefix="barograph-checkpoint-"))
            ending.callback(shutil.rmtree, checkpoint, True)
        if not journal.past.begun:
            scaled = {a.rescale.operator for a in settings.actions if a.rescale is not None}
            warm_up(spark, settings.parallelism, say, settings.steering is not None or "count" in scaled)
        return _Run(settings, spark, supervisor, place, checkpoint, journal, show, say, tamper).whole()


class StartAgain(Exception):  # noqa: N818  # no error: it is what was asked for
    """The application ends here, so that another one goes on from its checkpoint with the new placement."""


class _Run:
    """A run under way."""

    def __init__(
        self,
        settings: RunSettings,
        spark: SparkSession,
        supervisor: Supervisor,
        place: Place,
        checkpoint: Path,
        journal: Journal,
        show: Callable[[LiveLine], None],
        say: Callable[[str], None],
        tamper: Callable[[DataFrame], DataFrame],
    ) -> None:
        self.settings, self.spark, self.place, self.checkpoint = settings, spark, place, checkpoint
        self.show, self.say, self.tamper = show, say, tamper
        self.supervisor, self.engine, self.journal = supervisor, supervisor.engine, journal
        self.topology = wordcount.topology(settings.parallelism)
        # A horizon for shapes that go on for ever; nothing falls due after the run's end.
        self.schedule = settings.load.schedule(settings.seconds)
        self.start_ms = journal.past.start_ms
        self.replay = self._replay()
        self.committed_before = 0  # rows that were committed when the present life of the query began
        self.life = ""
        self.notes: list[str] = []
        self.steered: Steered | None = None
        self.watched = Watched()
        self.leaving = threading.Event()

    def whole(self) -> RunReport:
        query = self._start()
        try:
            self._await_first_epoch(query)
            self.place.fence()
            how_long_s = self.settings.seconds
            with steered(
                self.settings.steering, self.supervisor.endpoint, self.start_ms, how_long_s, self.say
            ) as steered_by:
                self._watch(query)
            self.steered = steered_by.found
            if self.leaving.is_set():
                self._leave()
            undrained = self._drain(query)
        finally:
            query.stop()
        return self._judge(undrained, query)

    def _replay(self) -> Replay:
        return Replay(
            self.schedule, self.settings.parallelism["source"], self.settings.lines, close_s=self.settings.seconds,
            start_ms=self.start_ms,
        )  # fmt: skip

    def load_s(self) -> float:
        """Seconds since the load's start."""
        return time.time() - self.start_ms / 1000

    def _start(self) -> Supervised:
        past = self.journal.past
        if past.begun:
            self.engine.place_first(self.topology, past.placement, past.parallelism)
        else:
            self.engine.place_first(self.topology, first_placement(self.engine, self.topology))
            self.start_ms = int((time.time() + LEAD_S) * 1000)
            self.journal.begin(self.start_ms)
        self.replay = self._replay()
        self.say("starting the query")
        return self.supervisor.start(self._build)

    def _build(self) -> DataStreamWriter:
        """A fresh writer for each life of the query."""
        writer = wordcount.build(self.spark, self.replay, self.settings.parallelism, self.tamper, self.settings.toil_us)
        return real_time(writer.option("checkpointLocation", str(self.checkpoint)), self.settings.epoch_s)

    def _await_first_epoch(self, query: Supervised) -> None:
        """Until every instance runs; the fences come after that, because start-up is not measured."""
        if not query.await_up(90.0):
            require_alive(query)
            raise RunFailed("the instances of the query did not start within 90 s")
        self.journal.driver_is_up(sum(committed_offsets(self.checkpoint)), int(time.time() * 1000))

    def _watch(self, query: Supervised) -> None:
        """Second by second until the source closes. Actions have threads of their own, so that the view goes on; blows
        have another one, so that they can hit while a plan is being carried out."""
        ordered = sorted(self.settings.actions, key=lambda a: a.at_s)
        due = [a for a in ordered if (a.at_s, a.text) not in self.journal.past.done]
        pending = [list(group) for _, group in groupby(due, lambda a: a.at_s)]
        read_before, second, told = self.rows_read(), 0, 0
        with ThreadPoolExecutor(1, "plans") as hand, ThreadPoolExecutor(1, "blows") as fist:
            acting: list[Future[None]] = []

            def act(group: list[Action]) -> None:
                plans = [a for a in group if a.blow is None]
                if plans:
                    acting.append(hand.submit(self._act, plans))
                acting.extend(fist.submit(self._strike, a) for a in group if a.blow not in (None, Blow.KILL_DRIVER))

            while (now_s := self.load_s()) < self.settings.seconds and not self.leaving.is_set():
                while pending and pending[0][0].at_s <= now_s:
                    act(pending.pop(0))
                if now_s >= second:
                    require_alive(query)
                    for restart in query.restarts[told:]:
                        self.journal.restarted(self._restart(restart))
                        self.say(f"{restart.cause}; down for {restart.down_s:.2f} s")
                    told = len(query.restarts)
                    read_before = self._tell(read_before)
                    second = int(self.load_s()) + 1
                next_s = min(second, *(group[0].at_s for group in pending[:1]), self.settings.seconds)
                time.sleep(max(0.0, min(next_s - self.load_s(), 1.0)))
            for late in () if self.leaving.is_set() else pending:
                act(late)
            for done in acting:
                done.result()

    def _act(self, actions: list[Action]) -> None:
        ordered_s = self.load_s()
        plan = plan_of(actions, self.topology.name, self.settings.migration)
        leaves = plan.mode is MigrationMode.RESTART_APP
        # What the next application begins with is ordered of this one, as if for its next epoch.
        outcome: Outcome = self.supervisor.apply(replace(plan, mode=MigrationMode.BOUNDARY) if leaves else plan)
        reason = "; ".join(f"{r.what}: {r.reason}" for r in outcome.refused)
        placement, parallelism = self.engine.orders(self.topology.name)
        self.journal.ordered(parallelism, placement)
        for action in actions:
            report = ActionReport(
                action.at_s, action.text, outcome.ok, reason, outcome.order_to_commit_s, None, outcome.done
            )
            self.journal.acted(report, (ordered_s, self.load_s()))
        if leaves and outcome.ok:
            self.leaving.set()

    def _leave(self) -> None:
        """Between two epochs, so that nothing is repeated."""
        self.engine.hold(self.topology.name)
        self.engine.refresh()
        self.journal.saw(self.engine.output(self.topology.name), self._latency(), self.rows_read(), None)
        self.journal.left(int(time.time() * 1000))
        raise StartAgain

    def _strike(self, action: Action) -> None:
        struck_s = self.load_s()
        did: tuple[str, ...] = ()
        reason = ""
        try:
            did = (strike(action, self.place.run, self.engine, self.settings.actions),)
        except BadInput as error:
            reason = str(error)
        report = ActionReport(action.at_s, action.text, not reason, reason, None, None, did)
        self.journal.acted(report, (struck_s, self.load_s()))

    def rows_read(self) -> int:
        """Lines read from the source so far, each once: a life begins where the one before had committed."""
        present = self.engine.sight.present(self.topology.name)
        if present is None:
            return self.committed_before
        if present.run != self.life:
            self.life, self.committed_before = present.run, sum(committed_offsets(self.checkpoint, present.epoch - 1))
        epochs = [e for e in self.engine.epochs(self.topology.name) if e.run == present.run]
        lives = (life for e in epochs for i, life in e.lives.items() if i.operator == "source")
        return self.committed_before + sum(life.rows_read for life in lives)

    def _tell(self, read_before: int) -> int:
        now = self._look()
        at_s = self.load_s()
        read = self.rows_read()
        due = int(self.schedule.rows_by(max(0.0, min(at_s, self.settings.seconds))))
        tenth = int(time.time() * 100)
        output = self.engine.output(self.topology.name)
        present = self.engine.sight.present(self.topology.name)
        self.journal.saw(output, self._latency(), read, present.planned_ms if present else None)
        out = sum(output.get(t, 0) for t in range(tenth - 150, tenth - 50))
        by_node: dict[str, list[str]] = {n.name: [] for n in self.engine.nodes}
        for instance, slot in sorted(now.placement.slots.items()):
            by_node[slot.node].append(f"{instance.operator}/{instance.index}")
        epoch = self.engine.sight.present(self.topology.name)
        self.show(
            LiveLine(
                at_s, self.schedule.rate_at(max(at_s, 0.0)), max(0, read - read_before), out, max(0, due - read),
                epoch.epoch if epoch else 0, next((t.latency_due for t in now.topology_metrics), None), by_node,
            )
        )  # fmt: skip
        return read

    def _look(self) -> Snapshot:
        """Who observes takes what was counted; where a controller does, what it last saw is shown."""
        if self.settings.steering is None:
            now = self.engine.observe()
            if self.load_s() > 0:
                self.watched.take(now)
            return now
        self.engine.refresh()
        return self.engine.last or self.engine.observe()

    def _latency(self) -> dict[str, Histogram]:
        return {clock: self.engine.latency(self.topology.name, clock) for clock in CLOCKS}

    def _drain(self, query: Supervised) -> int:
        """The source is closed: read what is left, commit it, say how many lines are still unread."""
        self.say("draining")
        due = sum(self.replay.rows())
        deadline = time.monotonic() + self.settings.drain_s
        while (left := due - sum(committed_offsets(self.checkpoint))) > 0 and time.monotonic() < deadline:
            require_alive(query)
            self.engine.refresh()
            if self.rows_read() >= due:
                self.supervisor.apply(plan_of([Action(0.0, "cut")], self.topology.name))
            else:
                time.sleep(0.05)
        if left > 0:  # what was read in time is committed with a last cut
            self.supervisor.apply(plan_of([Action(0.0, "cut")], self.topology.name))
            left = due - sum(committed_offsets(self.checkpoint))
        # The last rows out are reported a moment after the epoch has ended.
        self.engine.refresh()
        return left

    def _judge(self, undrained: int, query: Supervised) -> RunReport:
        self.say("reading the state back")
        read = committed_offsets(self.checkpoint)
        verdict = judge(
            truth_by_spark(self.spark, self.replay, read), wordcount.counted(self.spark, str(self.checkpoint))
        )
        self.journal.saw(self.engine.output(self.topology.name), self._latency(), self.rows_read(), None)
        restarts = (*self.journal.past.restarts, *(self._restart(r) for r in query.restarts))
        output = self.journal.output
        new = first_time_output(output, restarts, self.start_ms)
        words = self.settings.lines.words_per_line
        found = pauses(new, self.schedule, self.start_ms, self.settings.seconds, words)
        actions = tuple(
            replace(report, gap_s=longest(found, start, end) if report.ok else None)
            for report, (start, end) in self.journal.actions()
        )
        told = self.steered or self._unsteered(actions)
        windows = [window for report, window in self.journal.actions() if report.ok]
        stops = stops_of(found, windows, restarts, told.decisions)
        epochs = self.engine.epochs(self.topology.name)
        strays = {
            f"{i.operator}/{i.index} did not get executor {s.wanted} in epoch {e.epoch}: {s.because}"
            for e in epochs
            for i, s in e.seated.items()
            if s.wanted and s.because
        }
        return RunReport(
            wordcount.NAME, str(self.settings.load), self.settings.seconds, sum(self.replay.rows()), undrained, verdict,
            longest(found), self.journal.past.epochs + len([e for e in epochs if e.planned_ms > 0]), actions,
            (*self.notes, *sorted(strays)), restarts, sum(output.values()),
            self.journal.latency, self.settings.timeout_s, told, self.start_ms,
            degradation(new, self.schedule, self.start_ms, self.settings.seconds, words, stops),
        )  # fmt: skip

    def _unsteered(self, actions: Sequence[ActionReport]) -> Steered:
        return self.watched.told(self.settings.seconds, actions, whole=not self.journal.past.begun)

    def _restart(self, restart: Restart) -> RestartReport:
        at_s = restart.at_ms / 1000 - self.start_ms / 1000
        return RestartReport(at_s, restart.cause, restart.down_s, restart.rows.read, restart.rows.output)


def first_placement(engine: SparkEngine, topology: Topology) -> Placement:
    """Where the policy puts a topology that does not run yet."""
    now = engine.observe()
    coming = replace(now, topologies=(*now.topologies, topology))
    demand = Demand(
        tuple(OperatorDemand(topology.name, o.name, o.parallelism, (0.0,) * o.parallelism) for o in topology.operators)
    )
    return even((), coming, demand, Allotment()).placement
