"""One run of a workload on a real cluster: start, watch, act at the ordered seconds, drain, judge.

It decides no placement of its own: the first one is the policy's, the rest are the user's orders.
"""

import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.spark.checkpoint import committed_offsets
from barograph.engines.spark.conf import plugin_settings
from barograph.engines.spark.embedded import EmbeddedCluster, start_cluster
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.java import find_java
from barograph.engines.spark.nodes import fence_run, lift_run
from barograph.engines.spark.runs import run_of
from barograph.engines.spark.session import await_executors, open_session, real_time
from barograph.engines.spark.settings import ClusterSettings, require_free_port
from barograph.engines.spark.supervise import Supervised
from barograph.experiments.actions import Action, check_actions, plan_of
from barograph.experiments.pauses import longest, pauses
from barograph.experiments.report import ActionReport, RunReport
from barograph.experiments.verdict import judge
from barograph.model import (
    Allotment,
    BadInput,
    Demand,
    Load,
    Node,
    OperatorDemand,
    Outcome,
    Placement,
    Plan,
    Snapshot,
    Topology,
)
from barograph.model.checks import require, require_number, require_positive, require_whole
from barograph.place.even import even
from barograph.workloads import wordcount
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import Replay
from barograph.workloads.truth import truth_by_spark

# Between the query's start and the first row: the executors, warm by then, launch the tasks.
LEAD_S = 4.0
WARM_UP_ROWS_S = 2000


class RunFailed(RuntimeError):  # noqa: N818  # named like what happened
    """The query ended before the run did. The text says why."""


@dataclass(frozen=True)
class RunSettings:
    """Everything a run is. master: a cluster that exists; None starts one as ``cluster`` says."""

    load: Load
    seconds: float = 60.0
    parallelism: dict[str, int] = field(default_factory=lambda: dict(wordcount.DEFAULT_PARALLELISM))
    epoch_s: float = 60.0
    cluster: ClusterSettings = field(default_factory=lambda: ClusterSettings(3, 0.6, 8))
    master: str | None = None
    checkpoint: Path | None = None
    actions: tuple[Action, ...] = ()
    lines: LineShape = field(default_factory=LineShape)
    drain_s: float = 120.0

    def __post_init__(self) -> None:
        require_positive("seconds", self.seconds)
        require_number("epoch", self.epoch_s, 1.0)
        require_positive("drain seconds", self.drain_s)
        known = set(wordcount.DEFAULT_PARALLELISM)
        for operator, count in self.parallelism.items():
            require(operator in known, f"wordcount has no operator {operator!r}; it has {', '.join(sorted(known))}")
            require_whole(f"parallelism of {operator}", count, 1)


@dataclass(frozen=True, slots=True)
class LiveLine:
    """One second of a run, for the person who watches."""

    at_s: float
    due_rows_s: float
    read_rows_s: float
    out_rows_s: float
    backlog_rows: int
    epoch: int
    by_node: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run runs: its master, its nodes by host, and how to fence them once it is up."""

    conf: dict[str, str]
    nodes: dict[str, Node]
    executors: int
    fence: Callable[[], None]


def check(settings: RunSettings) -> None:
    """Refuse, before anything is started, what can never be."""
    find_java()
    if settings.master is None:
        cluster = settings.cluster
        require_free_port(cluster.port)
    else:
        run = run_of(settings.master)
        require(
            run is not None,
            f"no cluster answers to {settings.master!r} here: 'barograph cluster status' lists those that run",
        )
        assert run is not None
        cluster = run.settings
    topology = wordcount.topology(settings.parallelism)
    seats = cluster.nodes * cluster.executors * cluster.seats
    count = sum(o.parallelism for o in topology.operators)
    require(count <= seats, f"{count} instances need a seat each and there are {seats} seats")
    slots = dict.fromkeys(cluster.node_names(), cluster.executors)
    check_actions(settings.actions, topology, slots, seats, settings.seconds)
    if settings.checkpoint is not None:
        require_empty_and_writable(settings.checkpoint)


def require_empty_and_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        require(not any(folder.iterdir()), f"the checkpoint folder {folder} is not empty: a run starts from nothing")
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadInput(f"the checkpoint folder {folder} cannot be written: {error.strerror}") from error


def run(
    settings: RunSettings,
    show: Callable[[LiveLine], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    tamper: Callable[[DataFrame], DataFrame] = lambda words: words,
) -> RunReport:
    """Everything from an empty machine to the verdict; what was started is ended, whatever happens."""
    check(settings)
    with ExitStack() as ending:
        place = _open_place(settings, ending, say)
        say("starting Spark")
        spark = open_session("barograph run", plugin_settings(), place.conf)
        ending.callback(spark.stop)
        await_executors(spark, place.executors)
        checkpoint = settings.checkpoint
        if checkpoint is None:
            checkpoint = Path(tempfile.mkdtemp(prefix="barograph-checkpoint-"))
            ending.callback(shutil.rmtree, checkpoint, True)
        warm_up(spark, settings.parallelism, say)
        return _Run(settings, spark, place, checkpoint, show, say, tamper).whole()


def warm_up(spark: SparkSession, parallelism: dict[str, int], say: Callable[[str], None] = lambda _: None) -> None:
    """Run the same query for a moment, so that classes are loaded and code is compiled before anything is measured."""
    say("warming up")
    engine = SparkEngine(spark, {})
    name = f"{wordcount.NAME}-warm-up"
    replay = Replay(Load.parse(f"constant {WARM_UP_ROWS_S}").schedule(1.0), parallelism["source"])
    with tempfile.TemporaryDirectory(prefix="barograph-warm-up-", ignore_cleanup_errors=True) as folder:
        writer = wordcount.build(spark, replay, parallelism).queryName(name)
        query = real_time(writer.option("checkpointLocation", folder), 60.0).start()
        try:
            for _ in range(3):  # an epoch's end and the next one's start are warmed as well
                _await_output(engine, name, query)
                engine.apply(Plan(cuts=(name,)))
        finally:
            query.stop()


def _await_output(engine: SparkEngine, name: str, query: StreamingQuery, timeout_s: float = 90.0) -> None:
    """Until rows of the present epoch have come out for a while."""
    engine.refresh()
    before = sum(engine.sight.output.get(name, {}).values())
    deadline = time.monotonic() + timeout_s
    while sum(engine.sight.output.get(name, {}).values()) < before + 8 * WARM_UP_ROWS_S:
        require_alive(query)
        if time.monotonic() > deadline:
            raise RunFailed(f"no row came out of the query within {timeout_s:g} s")
        time.sleep(0.1)
        engine.refresh()


def require_alive(query: StreamingQuery | Supervised) -> None:
    error = query.exception()
    if error is not None:
        raise RunFailed(f"the query ended: {str(error).splitlines()[0]}")
    if not query.isActive:
        raise RunFailed("the query was stopped by somebody else")


def _open_place(settings: RunSettings, ending: ExitStack, say: Callable[[str], None]) -> _Place:
    if settings.master is None:
        say(f"starting {settings.cluster.nodes} nodes")
        cluster = ending.enter_context(start_cluster(settings.cluster))
        run = cluster.run
    else:
        found = run_of(settings.master)
        assert found is not None  # check() has seen it
        run, cluster = found, EmbeddedCluster(found, find_java())
        lift_run(run)  # executors start without a limit; it holds again before the first row
    hosts = run.settings.addresses()
    nodes = {hosts[n.name]: n for n in run.settings.model_nodes()}
    count = run.settings.nodes * run.settings.executors
    return _Place(cluster.session_conf(), nodes, count, lambda: fence_run(run))


class _Run:
    """A run under way."""

    def __init__(
        self,
        settings: RunSettings,
        spark: SparkSession,
        place: _Place,
        checkpoint: Path,
        show: Callable[[LiveLine], None],
        say: Callable[[str], None],
        tamper: Callable[[DataFrame], DataFrame],
    ) -> None:
        self.settings, self.spark, self.place, self.checkpoint = settings, spark, place, checkpoint
        self.show, self.say, self.tamper = show, say, tamper
        self.engine = SparkEngine(spark, place.nodes)
        self.topology = wordcount.topology(settings.parallelism)
        # A horizon for shapes that go on for ever; nothing falls due after the run's end.
        self.schedule = settings.load.schedule(settings.seconds)
        self.start_ms = 0
        self.replay = self._replay()
        self.reports: list[ActionReport] = []
        self.windows: list[tuple[float, float]] = []
        self.notes: list[str] = []

    def whole(self) -> RunReport:
        query = self._start()
        try:
            self._await_first_epoch(query)
            self.place.fence()
            self._watch(query)
            undrained = self._drain(query)
        finally:
            query.stop()
        return self._judge(undrained)

    def _replay(self) -> Replay:
        return Replay(
            self.schedule, self.settings.parallelism["source"], self.settings.lines, close_s=self.settings.seconds,
            start_ms=self.start_ms,
        )  # fmt: skip

    def load_s(self) -> float:
        """Seconds since the load's start."""
        return time.time() - self.start_ms / 1000

    def _start(self) -> StreamingQuery:
        self.engine.place_first(self.topology, first_placement(self.engine, self.topology))
        self.start_ms = int((time.time() + LEAD_S) * 1000)
        self.replay = self._replay()
        writer = wordcount.build(self.spark, self.replay, self.settings.parallelism, self.tamper)
        self.say("starting the query")
        trigger = real_time(writer.option("checkpointLocation", str(self.checkpoint)), self.settings.epoch_s)
        return trigger.start()

    def _await_first_epoch(self, query: StreamingQuery) -> None:
        """Until every instance runs; the fences come after that, because start-up is not measured."""
        deadline = time.monotonic() + 60
        name = self.topology.name
        while time.monotonic() < deadline:
            require_alive(query)
            self.engine.refresh()
            epoch = self.engine.sight.present(name)
            if epoch is not None and len(epoch.lives) == len(epoch.seated):
                return
            time.sleep(0.05)
        raise RunFailed("the instances of the query did not start within 60 s")

    def _watch(self, query: StreamingQuery) -> None:
        """Second by second until the source closes. Actions have a thread of their own, so that the view goes on."""
        ordered = sorted(self.settings.actions, key=lambda a: a.at_s)
        pending = [list(group) for _, group in groupby(ordered, lambda a: a.at_s)]
        read_before, second = 0, 0
        with ThreadPoolExecutor(1, "actions") as hand:
            acting = []
            while (now_s := self.load_s()) < self.settings.seconds:
                while pending and pending[0][0].at_s <= now_s:
                    acting.append(hand.submit(self._act, pending.pop(0)))
                if now_s >= second:
                    require_alive(query)
                    read_before = self._tell(read_before)
                    second = int(self.load_s()) + 1
                next_s = min(second, *(group[0].at_s for group in pending[:1]), self.settings.seconds)
                time.sleep(max(0.0, min(next_s - self.load_s(), 1.0)))
            acting += [hand.submit(self._act, late) for late in pending]
            for done in acting:
                done.result()

    def _act(self, actions: list[Action]) -> None:
        ordered_s = self.load_s()
        outcome: Outcome = self.engine.apply(plan_of(actions, self.topology.name))
        ended_s = self.load_s()
        for action in actions:
            reason = "; ".join(f"{r.what}: {r.reason}" for r in outcome.refused)
            self.reports.append(
                ActionReport(
                    action.at_s, action.text, outcome.ok, reason, outcome.order_to_commit_s, None, outcome.done
                )
            )
            self.windows.append((ordered_s, ended_s))

    def rows_read(self) -> int:
        """Lines read from the source so far, over all epochs."""
        epochs = self.engine.epochs(self.topology.name)
        lives = (life for e in epochs for i, life in e.lives.items() if i.operator == "source")
        return sum(life.rows_read for life in lives)

    def _tell(self, read_before: int) -> int:
        now: Snapshot = self.engine.observe()
        at_s = self.load_s()
        read = self.rows_read()
        due = int(self.schedule.rows_by(max(0.0, min(at_s, self.settings.seconds))))
        tenth = int(time.time() * 100)
        output = self.engine.sight.output.get(self.topology.name, {})
        out = sum(output.get(t, 0) for t in range(tenth - 150, tenth - 50))
        by_node: dict[str, list[str]] = {n.name: [] for n in now.nodes}
        for instance, slot in sorted(now.placement.slots.items()):
            by_node[slot.node].append(f"{instance.operator}/{instance.index}")
        epoch = self.engine.sight.present(self.topology.name)
        self.show(
            LiveLine(
                at_s, self.schedule.rate_at(max(at_s, 0.0)), read - read_before, out, max(0, due - read),
                epoch.epoch if epoch else 0, by_node,
            )
        )  # fmt: skip
        return read

    def _drain(self, query: StreamingQuery) -> int:
        """The source is closed: read what is left, commit it, say how many lines are still unread."""
        self.say("draining")
        due = sum(self.replay.rows())
        deadline = time.monotonic() + self.settings.drain_s
        while (left := due - sum(committed_offsets(self.checkpoint))) > 0 and time.monotonic() < deadline:
            require_alive(query)
            self.engine.refresh()
            if self.rows_read() >= due:
                self.engine.apply(plan_of([Action(0.0, "cut")], self.topology.name))
            else:
                time.sleep(0.05)
        if left > 0:  # what was read in time is committed with a last cut
            self.engine.apply(plan_of([Action(0.0, "cut")], self.topology.name))
            left = due - sum(committed_offsets(self.checkpoint))
        # The last rows out are reported a moment after the epoch has ended.
        self.engine.refresh()
        return left

    def _judge(self, undrained: int) -> RunReport:
        self.say("reading the state back")
        read = committed_offsets(self.checkpoint)
        verdict = judge(
            truth_by_spark(self.spark, self.replay, read), wordcount.counted(self.spark, str(self.checkpoint))
        )
        output = self.engine.sight.output.get(self.topology.name, {})
        found = pauses(output, self.schedule, self.start_ms, self.settings.seconds, self.settings.lines.words_per_line)
        actions = tuple(
            replace(report, gap_s=longest(found, start, end) if report.ok else None)
            for report, (start, end) in zip(self.reports, self.windows, strict=True)
        )
        epochs = self.engine.epochs(self.topology.name)
        strays = {
            f"{i.operator}/{i.index} did not get executor {s.wanted} in epoch {e.epoch}: {s.because}"
            for e in epochs
            for i, s in e.seated.items()
            if s.wanted and s.because
        }
        return RunReport(
            wordcount.NAME, str(self.settings.load), self.settings.seconds, sum(self.replay.rows()), undrained, verdict,
            longest(found), len([e for e in epochs if e.planned_ms > 0]), actions, (*self.notes, *sorted(strays)),
        )  # fmt: skip


def first_placement(engine: SparkEngine, topology: Topology) -> Placement:
    """Where the policy puts a topology that does not run yet."""
    now = engine.observe()
    coming = replace(now, topologies=(*now.topologies, topology))
    demand = Demand(
        tuple(OperatorDemand(topology.name, o.name, o.parallelism, (0.0,) * o.parallelism) for o in topology.operators)
    )
    return even(coming, demand, Allotment()).placement
