"""A run under way: its query is started, watched second by second, acted on, drained and judged.

It decides no placement of its own: the first one is the policy's, the rest are the user's orders.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.latency import Histogram
from barograph.engines.spark.checkpoint import committed_offsets
from barograph.engines.spark.session import real_time
from barograph.engines.spark.supervise import Supervised
from barograph.engines.spark.supervisor import Supervisor
from barograph.experiments.actions import Action, Blow, plan_of
from barograph.experiments.blows import strike
from barograph.experiments.degradation import degradation, stops_of
from barograph.experiments.drain import drained
from barograph.experiments.first import First, first_decision
from barograph.experiments.held import Held
from barograph.experiments.journal import Journal
from barograph.experiments.live import LiveLine, by_node
from barograph.experiments.pauses import longest, pauses
from barograph.experiments.place import Place
from barograph.experiments.repeats import first_time_output, restart_report
from barograph.experiments.report import CLOCKS, ActionReport, RunReport
from barograph.experiments.rows_read import RowsRead
from barograph.experiments.run_settings import RunSettings
from barograph.experiments.steered import Steered
from barograph.experiments.steering import steered
from barograph.experiments.strays import strays
from barograph.experiments.unsteered import Watched
from barograph.experiments.verdict import judge
from barograph.experiments.warm import RunFailed, require_alive
from barograph.model import BadInput, MigrationMode, Outcome, Snapshot
from barograph.workloads import wordcount
from barograph.workloads.replay import Replay
from barograph.workloads.truth import truth_by_spark

# Between the query's start and the first row: the executors, warm by then, launch the tasks.
LEAD_S = 4.0


class StartAgain(Exception):  # noqa: N818  # no error: it is what was asked for
    """The application ends here, so that another one goes on from its checkpoint with the new placement."""


class UnderWay:
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
        self.first: First | None = None
        self.takes_over = journal.past.begun  # from a driver that was killed or has left
        # A horizon for shapes that go on for ever; nothing falls due after the run's end.
        self.schedule = settings.load.schedule(settings.seconds)
        self.start_ms = journal.past.start_ms
        self.replay = self._replay()
        self.read = RowsRead(self.engine, self.topology.name, checkpoint)
        self.notes: list[str] = []
        self.steered: Steered | None = None
        self.watched = Watched(settings.seconds)
        self.leaving = threading.Event()

    def whole(self) -> RunReport:
        query = self._start()
        try:
            self._await_first_epoch(query)
            self._hold()
            how_long_s = self.settings.seconds
            with steered(
                self.settings.steering, self.supervisor.endpoint, self.start_ms, how_long_s, self._held(), self.say
            ) as steered_by:
                self._watch(query)
            self.steered = steered_by.found
            if self.leaving.is_set():
                self._leave()
            self.say("draining")
            undrained = drained(query, self.supervisor, self.read, self.replay, self.checkpoint, self.settings.drain_s)
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
        self.first = first = past.first or self._decide_first()
        self.topology = wordcount.topology(first.parallelism)
        if self.takes_over:
            self.engine.place_first(self.topology, past.placement, past.parallelism)
        else:
            self.engine.place_first(self.topology, first.placement)
            self.start_ms = int((time.time() + LEAD_S) * 1000)
            self.journal.begin(self.start_ms, first)
        self.replay = self._replay()
        self.say("starting the query")
        return self.supervisor.start(self._build)

    def _decide_first(self) -> First:
        """By the policy that steers; by none where it only advises."""
        steering = self.settings.steering
        policy = steering.decider() if steering is not None and steering.acts else None
        enforce = steering is not None and steering.enforce
        first = first_decision(policy, self.engine.observe(), self.topology, enforce)
        for sentence in first.said:
            self.say(sentence)
        self.notes += first.said
        return first

    def _build(self) -> DataStreamWriter:
        """A fresh writer for each life of the query."""
        assert self.first is not None, "the query is built after the first decision"
        writer = wordcount.build(self.spark, self.replay, self.first.parallelism, self.tamper, self.settings.toil_us)
        return real_time(writer.option("checkpointLocation", str(self.checkpoint)), self.settings.epoch_s)

    def _hold(self) -> None:
        """From now on nodes have their fences, and instances the shares of the first decision: start-up is over."""
        self.place.fence()
        if self.first is None or self.takes_over:
            return
        for refusal in self.supervisor.apply(self.first.then).refused:
            self.notes.append(f"of the first decision, {refusal.what}: {refusal.reason}")

    def _held(self) -> Held | None:
        """What is in force until a controller orders something; unknown to a driver that takes over."""
        return None if self.first is None or self.takes_over else Held().with_plan(self.first.then)

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
        read_before, second, told = self.read.rows(), 0, 0
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
                        self.journal.restarted(restart_report(restart, self.start_ms))
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
        self._note_orders()
        for action in actions:
            report = ActionReport(
                action.at_s, action.text, outcome.ok, reason, outcome.order_to_commit_s, None, outcome.done
            )
            self.journal.acted(report, (ordered_s, self.load_s()))
        if leaves and outcome.ok:
            self.leaving.set()

    def _note_orders(self) -> None:
        """A driver that takes over begins with what was last ordered, whoever ordered it."""
        placement, parallelism = self.engine.orders(self.topology.name)
        self.journal.ordered(parallelism, placement)

    def _leave(self) -> None:
        """Between two epochs, so that nothing is repeated."""
        self.engine.hold(self.topology.name)
        self.engine.refresh()
        self.journal.saw(self.engine.output(self.topology.name), self._latency(), self.read.rows(), None)
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

    def _tell(self, read_before: int) -> int:
        now = self._look()
        at_s = self.load_s()
        read = self.read.rows()
        due = int(self.schedule.rows_by(max(0.0, min(at_s, self.settings.seconds))))
        tenth = int(time.time() * 100)
        output = self.engine.output(self.topology.name)
        present = self.engine.sight.present(self.topology.name)
        self.journal.saw(output, self._latency(), read, present.planned_ms if present else None)
        self._note_orders()
        out = sum(output.get(t, 0) for t in range(tenth - 150, tenth - 50))
        latency = next((t.latency_due for t in now.topology_metrics), None)
        self.show(
            LiveLine(
                at_s, self.schedule.rate_at(max(at_s, 0.0)), max(0, read - read_before), out, max(0, due - read),
                present.epoch if present else 0, latency, by_node(now, self.engine.nodes),
            )
        )  # fmt: skip
        return read

    def _look(self) -> Snapshot:
        """Who observes takes what was counted; where a controller does, what it last saw is shown."""
        if self.settings.steering is None:
            now = self.engine.observe()
            if (at_s := self.load_s()) > 0:
                self.watched.take(at_s, now)
            return now
        self.engine.refresh()
        return self.engine.last or self.engine.observe()

    def _latency(self) -> dict[str, Histogram]:
        return {clock: self.engine.latency(self.topology.name, clock) for clock in CLOCKS}

    def _judge(self, undrained: int, query: Supervised) -> RunReport:
        self.say("reading the state back")
        read = committed_offsets(self.checkpoint)
        verdict = judge(
            truth_by_spark(self.spark, self.replay, read), wordcount.counted(self.spark, str(self.checkpoint))
        )
        self.journal.saw(self.engine.output(self.topology.name), self._latency(), self.read.rows(), None)
        restarts = (*self.journal.past.restarts, *(restart_report(r, self.start_ms) for r in query.restarts))
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
        return RunReport(
            wordcount.NAME, str(self.settings.load), self.settings.seconds, sum(self.replay.rows()), undrained, verdict,
            longest(found), self.journal.past.epochs + len([e for e in epochs if e.planned_ms > 0]), actions,
            (*self.notes, *strays(epochs)), restarts, sum(output.values()),
            self.journal.latency, self.settings.timeout_s, told, self.start_ms,
            degradation(new, self.schedule, self.start_ms, self.settings.seconds, words, stops),
            None if self.first is None else self.first.to_json(),
        )  # fmt: skip

    def _unsteered(self, actions: Sequence[ActionReport]) -> Steered:
        return self.watched.told(actions, whole=not self.takes_over)
