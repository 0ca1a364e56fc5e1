"""A run in progress: its query is started, watched second by second, drained and judged.

It decides no placement: the first one is the policy's, or ``even``'s where no policy acts; later ones are the user's
actions or the controller's plans.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.latency import Histogram
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.interfaces import ArrangedQueries
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.session import real_time
from barograph.experiments.figures.cpu_in_force import CpuInForce
from barograph.experiments.figures.degradation import degradation, stops_of
from barograph.experiments.figures.pauses import around, longest, pauses
from barograph.experiments.figures.repeats import first_time_output, restart_report
from barograph.experiments.figures.rows_read import RowsRead
from barograph.experiments.figures.steered import Steered
from barograph.experiments.figures.unsteered import UnsteeredFigures
from barograph.experiments.output_topic import counts_in_topic, judge_output
from barograph.experiments.report import CLOCKS, RunReport
from barograph.experiments.run_settings import RunSettings
from barograph.experiments.running.carry_out import ActionThreads
from barograph.experiments.running.drain import drained
from barograph.experiments.running.faults import Killable
from barograph.experiments.running.journal import Journal
from barograph.experiments.running.live_table import LiveLine, by_node, by_second
from barograph.experiments.running.run_cluster import RunCluster
from barograph.experiments.running.strays import strays
from barograph.experiments.running.topic_feeds import TopicFeeds
from barograph.experiments.running.warm_up import RunFailed, require_alive
from barograph.experiments.steering.first_placement import First, first_decision
from barograph.experiments.steering.steering import steered
from barograph.experiments.verdict import judge
from barograph.model import Snapshot
from barograph.workloads.workload import rows_due

# Between the query's start and the first row: the executors, warm by then, launch the tasks.
LEAD_S = 4.0
OBSERVER = "run"


class StartAgain(Exception):  # noqa: N818  # not an error: the user asked for it
    """The application ends here; another one continues from its checkpoint with the new placement."""


class RunInProgress:
    def __init__(
        self,
        settings: RunSettings,
        spark: SparkSession,
        supervisor: Supervisor,
        cluster: RunCluster,
        checkpoint: Path,
        journal: Journal,
        show: Callable[[LiveLine], None],
        say: Callable[[str], None],
        tamper: Callable[[DataFrame], DataFrame],
        feeds: TopicFeeds | None = None,
    ) -> None:
        self.settings, self.spark, self.cluster, self.checkpoint = settings, spark, cluster, checkpoint
        self.show, self.say, self.tamper, self.feeds = show, say, tamper, feeds
        self.supervisor, self.journal = supervisor, journal
        self.engine: ArrangedQueries = supervisor.engine
        self.workload = settings.workload
        self.topology = self.workload.topology(settings.parallelism)
        self.first: First | None = None
        self.takes_over = journal.earlier.begun  # from a driver that was killed or has left
        # Some load shapes have no end of their own; nothing falls due after the run's end.
        self.schedule = settings.load.schedule(settings.seconds)
        self.start_ms = journal.earlier.start_ms
        self.inputs = settings.inputs(self.start_ms)
        self.read = RowsRead(self.engine, self.topology, checkpoint)
        self.notes: list[str] = []
        self.lines: list[LiveLine] = []
        self.steered: Steered | None = None
        self.unsteered = UnsteeredFigures(settings.seconds)
        self.actions = ActionThreads(
            settings, supervisor, Killable(cluster.run, None if feeds is None else feeds.broker), journal, self.load_s
        )

    def whole(self) -> RunReport:
        """From the query's start to the report."""
        query = self._start()
        try:
            self._await_first_epoch(query)
            self._limit()
            seconds, endpoint = self.settings.seconds, self.supervisor.endpoint
            begun = self._begun_with()
            logs = self.settings.logs
            self.supervisor.left_limits.lifts = False  # what is left is drained under the policy's limits too
            with steered(self.settings.steering, endpoint, self.start_ms, seconds, begun, self.say, logs) as steering:
                self._watch(query)
            self.steered = steering.found
            if self.actions.leaving.is_set():
                self._leave()
            self.say("draining")
            undrained = drained(query, self.supervisor, self.read, self.inputs, self.checkpoint, self.settings.drain_s)
            if undrained and self.feeds is not None:
                self.notes += self.feeds.failures()
        finally:
            query.stop()
        return self._report(undrained, query)

    def load_s(self) -> float:
        """Seconds since the load's start."""
        return time.time() - self.start_ms / 1000

    def _start(self) -> Supervised:
        earlier = self.journal.earlier
        self.first = first = earlier.first or self._decide_first()
        self.topology = self.workload.topology(first.parallelism)
        if self.takes_over:
            self.engine.place_first(self.topology, earlier.placement, earlier.parallelism)
        else:
            self.engine.place_first(self.topology, first.placement)
            self.start_ms = int((time.time() + LEAD_S - self.settings.behind_s) * 1000)
            self.journal.begin(self.start_ms, first)
        self.inputs = self.settings.inputs(self.start_ms)
        if self.feeds is not None:
            self.inputs = self.feeds.begin(self.inputs, self.start_ms)
            if self.settings.behind_s > 0:
                self.say("writing the backlog into the topics")
                self.feeds.await_backlog()
        self.say("starting the query")
        asked = self.settings
        return self.supervisor.start(self._build, limits=asked.restart, options=asked.query, recovery=asked.recovery)

    def _decide_first(self) -> First:
        """By the policy that steers; by none where it only advises."""
        steering = self.settings.steering
        policy = steering.decider() if steering is not None and steering.acts else None
        enforce = steering is not None and steering.enforce != "off"
        first = first_decision(policy, self.engine.observe(OBSERVER), self.topology, enforce)
        for sentence in first.said:
            self.say(sentence)
        self.notes += first.said
        return first

    def _build(self) -> DataStreamWriter:
        """A new writer for each start of the query."""
        assert self.first is not None, "the query is built after the first decision"
        out = None if self.feeds is None else self.feeds.out
        what = (self.spark, self.inputs, self.first.parallelism, self.settings.busy_us, self.tamper)
        # Not all workloads of other packages know topics.
        writer = self.workload.query(*what) if out is None else self.workload.query(*what, out=out)
        return real_time(writer.option("checkpointLocation", str(self.checkpoint)), self.settings.epoch_s)

    def _limit(self) -> None:
        """Limit nodes to their CPU, and instances to the shares of the first decision: start-up is over."""
        self.cluster.fence()
        if self.first is None or self.takes_over:
            return
        for refusal in self.supervisor.apply(self.first.then).refused:
            self.notes.append(f"of the first decision, {refusal.what}: {refusal.reason}")

    def _begun_with(self) -> CpuInForce | None:
        """What is in force until a controller orders something; unknown to a driver that takes over."""
        return None if self.first is None or self.takes_over else CpuInForce().with_plan(self.first.then)

    def _await_first_epoch(self, query: Supervised) -> None:
        """Until every instance runs. CPU limits come after that, because start-up is not measured."""
        if not query.await_up(300.0):
            require_alive(query)
            raise RunFailed("the instances of the query did not start within 300 s")
        self.journal.driver_is_up(sum(committed_offsets(self.checkpoint)), int(time.time() * 1000))

    def _watch(self, query: Supervised) -> None:
        """Second by second until the source closes."""
        read_before, second, told = self.read.rows(), 0, 0
        with self.actions as actions:
            while (now_s := self.load_s()) < self.settings.seconds and not actions.leaving.is_set():
                actions.start_due(now_s)
                if now_s >= second:
                    require_alive(query)
                    if self.feeds is not None:
                        self.feeds.check()
                    for restart in query.restarts[told:]:
                        self.journal.restarted(restart_report(restart, self.start_ms))
                        self.say(f"{restart.cause}; down for {restart.down_s:.2f} s")
                    told = len(query.restarts)
                    read_before = self._tell(read_before)
                    second = int(self.load_s()) + 1
                next_s = min(second, actions.next_s(), self.settings.seconds)
                time.sleep(max(0.0, min(next_s - self.load_s(), 1.0)))

    def _leave(self) -> None:
        """Between two epochs, so that nothing is repeated."""
        self.engine.hold(self.topology.name)
        self.engine.refresh()
        self.journal.saw(self._new_output(), self._latency(), self.read.rows(), None)
        self.journal.left(int(time.time() * 1000))
        raise StartAgain

    def _tell(self, read_before: int) -> int:
        """One line of the live table. Returns the rows read by now."""
        now = self._look()
        at_s = self.load_s()
        read, inputs = self.read.rows(), len(self.inputs)
        due = inputs * int(self.schedule.rows_by(max(0.0, min(at_s, self.settings.seconds))))
        now_cs = int(time.time() * 100)
        present = self.engine.present(self.topology.name)
        # Only the driver that takes over needs them second by second; the report reads them at its end.
        times = self._latency() if self.journal.outlives_the_driver else {}
        self.journal.saw(self._new_output(), times, read, present.planned_ms if present else None)
        self.actions.note_orders()
        out = self.engine.output_rows(self.topology.name, now_cs - 150, now_cs - 50)
        seen = next((t for t in now.topology_metrics if t.topology == self.topology.name), None)
        rate = inputs * self.schedule.rate_at(max(at_s, 0.0))
        line = LiveLine(
            at_s, rate, max(0, read - read_before), out, max(0, due - read),
            present.epoch if present else 0,
            None if seen is None else seen.latency_due, None if seen is None else seen.latency_record,
            by_node(now, self.engine.nodes), int(seen.backlog_rows) if seen and seen.backlog_known else None,
            read,
        )  # fmt: skip
        self.lines.append(line)
        self.show(line)
        return read

    def _look(self) -> Snapshot:
        """With a baseline of its own, whether a controller observes or not."""
        now = self.engine.observe(OBSERVER)
        if self.settings.steering is None and (at_s := self.load_s()) > 0:
            self.unsteered.take(at_s, now)
        return now

    def _new_output(self) -> dict[int, int]:
        return self.engine.new_output(self.topology.name, self.journal.seen)

    def _latency(self) -> dict[str, Histogram]:
        return {clock: self.engine.latency(self.topology.name, clock) for clock in CLOCKS}

    def _report(self, undrained: int, query: Supervised) -> RunReport:
        self.say("reading the result back")
        read = committed_offsets(self.checkpoint)
        counted = self.workload.counted(self.spark, str(self.checkpoint))
        due = self.workload.due(self.spark, self.inputs, read)
        verdict = judge(due, counted)
        out = None if self.feeds is None else self.feeds.out
        written = None if out is None else judge_output(due, counts_in_topic(self.spark, out))
        self.journal.saw(self._new_output(), self._latency(), self.read.rows(), None)
        restarts = (*self.journal.earlier.restarts, *(restart_report(r, self.start_ms) for r in query.restarts))
        output = self.journal.output
        new = first_time_output(output, restarts, self.start_ms)
        results = self.settings.results_per_load_row()
        found = pauses(new, self.schedule, self.start_ms, self.settings.seconds, results)
        downs = [(r.at_s, r.at_s + r.down_s) for r in restarts]
        acted = self.journal.actions()
        begun = [window[0] for _, window in acted]
        actions = tuple(
            replace(report, gap_s=longest(found, *around(window, downs, begun)) if report.ok else None)
            for report, window in acted
        )
        steering = self.steered or self.unsteered.told(actions, whole=not self.takes_over)
        windows = [window for report, window in self.journal.actions() if report.ok]
        stops = stops_of(found, windows, restarts, steering.decisions)
        epochs = self.engine.epochs(self.topology.name)
        planned = self.journal.earlier.epochs + len([e for e in epochs if e.planned_ms > 0])
        return RunReport(
            self.workload.name, str(self.settings.load), self.settings.seconds, rows_due(self.inputs), undrained,
            verdict, longest(found), planned, actions,
            (*self.notes, *strays(epochs)), restarts, self.journal.rows_out,
            self.journal.latency, self.settings.timeout_s, steering, self.start_ms,
            degradation(new, self.schedule, self.start_ms, self.settings.seconds, results, stops),
            None if self.first is None else self.first.to_json(), by_second(self.lines), written,
        )  # fmt: skip
