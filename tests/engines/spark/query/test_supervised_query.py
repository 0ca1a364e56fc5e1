"""Executors, nodes, clients and drivers are killed: no row is lost or counted twice, and rows flow again."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from pyspark.errors import IllegalArgumentException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.engines.spark.conftest import await_all_executors

from barograph.config import default
from barograph.engines.epoch_length import Recovery
from barograph.engines.spark.cluster.launch import MASTER
from barograph.engines.spark.cluster.node_status import executors_of, kill_executor
from barograph.engines.spark.cluster.processes import alive, send
from barograph.engines.spark.driver import epoch_bounds
from barograph.engines.spark.driver.client import RemoteEngine
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.session import real_time
from barograph.model import BadInput, Instance, Outcome, Placement, Plan, Rescale
from barograph.testing.local_cluster import LocalCluster, RunningQuery

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("all_executors")]


@pytest.fixture(scope="module", autouse=True)
def own_state() -> None:
    """That of the shared cluster: it is started again in part, which needs its folder."""


@pytest.fixture(scope="module")
def stage(kept_stage: LocalCluster) -> LocalCluster:
    return kept_stage


def handle(counting: RunningQuery) -> Supervised:
    assert isinstance(counting.query, Supervised)
    return counting.query


def node_of(stage: LocalCluster, counting: RunningQuery, instance: str) -> tuple[str, str]:
    """The node and the executor an instance runs on."""
    executor = counting.executors()[instance]
    return next((w.slot.node, w.executor) for w in stage.engine.workers() if w.executor == executor)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def await_flow(counting: RunningQuery, restarts: int = 1) -> None:
    """Wait until the query has died and restarted so many times, and rows come out again."""
    counting.settle(lambda: len(handle(counting).restarts) >= restarts, 120.0)
    before = counting.output()
    counting.settle(lambda: counting.output() > before + 100, 120.0)


def await_flow_without(counting: RunningQuery, executor: str) -> None:
    """Wait until rows come out and no instance is on a killed executor. A kill between two epochs restarts nothing: the
    next epoch is planned without that executor."""
    counting.settle(lambda: bool(now := counting.executors()) and executor not in now.values(), 120.0)
    before = counting.output()
    counting.settle(lambda: counting.output() > before + 100, 120.0)


def print_times(capsys: pytest.CaptureFixture[str], what: str, counting: RunningQuery) -> None:
    """Print times for people to read; bench/recovery.py has the limits."""
    with capsys.disabled():
        for restart in handle(counting).restarts[:1]:
            sys.stdout.write(f"\n{what}: {restart.cause}, down {restart.down_s:.2f} s, {restart.rows}\n")


def test_a_killed_executor_and_then_another(stage: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """What was read again is committed, and not read a third time: the epoch lasts five minutes, and without an early
    commit the second restart would read everything again."""
    with stage.query("twice", epoch_s=300.0, supervised=True) as counting:
        query = handle(counting)
        out = counting.output()
        counting.settle(lambda: counting.output() > out + 20_000, 60.0)  # a few seconds of rows to read again
        identity, run = query.id, query.runId
        node, executor = node_of(stage, counting, "count/1")
        kill_executor(stage.cluster.run, node, executor)
        await_flow(counting)
        print_times(capsys, "executor", counting)
        (first,) = query.restarts
        assert first.cause == f"lost executor {executor} on {node}"
        assert first.epoch is not None
        assert first.rows.read > 0
        assert (query.id, query.isActive, query.exception()) == (identity, True, None)
        assert query.runId != run
        assert query.awaitTermination(0.1) is False
        counting.settle(lambda: counting.epoch() > (first.epoch or 0) and bool(counting.executors()), 60.0)
        assert executor not in counting.executors().values()
        kill_executor(stage.cluster.run, *node_of(stage, counting, "count/0"))
        await_flow(counting, 2)
        second = query.restarts[1]
        assert second.epoch is not None and second.epoch > first.epoch
        assert second.rows.read < first.rows.read, query.restarts
        verdict = counting.verdict()
        assert verdict.exact, verdict
        assert query.lastProgress is not None
        assert not query.isActive
        assert query.awaitTermination() is None


def test_the_recovery_target_bounds_epochs_without_a_controller(
    stage: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trigger says five minutes. A target that no epoch meets leads to the shortest one."""
    monkeypatch.setattr(epoch_bounds, "MEASURE_S", 2.0)  # what it measures does not matter here
    recovery = Recovery(recovery_s=0.1, down_s=0.1, least_s=3.0)
    with stage.query("bounded", epoch_s=300.0, supervised=True, recovery=recovery) as counting:
        first = counting.epoch()
        counting.settle(lambda: counting.epoch() >= first + 2, 90.0, look_s=0.5)
        # Epochs are bounded before anything is measured too.
        counting.settle(lambda: stage.supervisor.bounds.most_s.get("bounded") == 3.0, 90.0, look_s=0.5)
        verdict = counting.verdict()
        assert verdict.exact, verdict


def test_a_killed_node_comes_back(stage: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    with stage.query(supervised=True) as counting:
        node, _ = node_of(stage, counting, "count/1")
        before = stage.cluster.run.leaders[node]
        stage.cluster.kill_node(node)
        await_flow(counting)
        print_times(capsys, "node", counting)
        counting.settle(lambda: next(n.alive for n in stage.cluster.status() if n.name == node), 120.0)
        assert stage.cluster.run.leaders[node] != before
        verdict = counting.verdict()
        assert verdict.exact, verdict


RECOVERY_TARGET_S = 30.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "unnoticed_s"),
    [(signal.SIGKILL, 0.0), (signal.SIGSTOP, default("executor.hung-after"))],
    ids=["killed", "stopped"],
)
def test_after_the_end_of_the_master_a_lost_executor_is_replaced(
    number: signal.Signals, unnoticed_s: float, stage: LocalCluster
) -> None:
    """A short stop is in order, so a master that is stopped is missed later than one that is killed."""
    with stage.query(supervised=True) as counting:
        run = stage.cluster.run
        address, before = run.master, run.leaders[MASTER]
        node, executor = node_of(stage, counting, "count/1")
        killed_s = time.monotonic()
        send(before, number)
        counting.settle(lambda: stage.cluster.run.leaders[MASTER] != before, RECOVERY_TARGET_S)
        assert not alive(before)
        kill_executor(run, node, executor)
        await_flow(counting)
        assert time.monotonic() - killed_s < RECOVERY_TARGET_S + unnoticed_s
        counting.settle(lambda: len(stage.engine.living()[0]) == run.settings.nodes, 60.0)
        assert stage.cluster.run.master == address
        executors = {e for n in run.settings.node_names() for e in executors_of(run, n)}
        assert executors == {w.executor for w in stage.engine.workers()}, "executors that no application knows"
        assert len(handle(counting).restarts) == 1, "the master's end alone restarts no query"
        verdict = counting.verdict()
        assert verdict.exact, verdict


@pytest.mark.slow
def test_a_stopped_executor_is_ended_and_replaced(stage: LocalCluster) -> None:
    """A short stop, as of a garbage collection, ends nothing; a long one is an end, and Spark alone takes 120 s."""
    with stage.query(supervised=True) as counting:
        run = stage.cluster.run
        node, executor = node_of(stage, counting, "count/1")
        process = executors_of(run, node, stage.engine.application)[executor]
        with stopped(process.pid):
            counting.settle(lambda: stage.engine.last_reports()[executor].age_s > 5.0)
        before = counting.output()
        counting.settle(lambda: counting.output() > before + 100, RECOVERY_TARGET_S)
        assert not handle(counting).restarts
        stopped_s = time.monotonic()
        send(process, signal.SIGSTOP)
        await_flow(counting)
        assert time.monotonic() - stopped_s < RECOVERY_TARGET_S
        assert not alive(process)
        assert [r.cause for r in handle(counting).restarts] == [f"lost executor {executor} on {node}"]
        verdict = counting.verdict()
        assert verdict.exact, verdict


@pytest.mark.slow
def test_spark_ends_a_stopped_executor_where_its_process_is_out_of_reach(stage: LocalCluster) -> None:
    with stage.query(supervised=True) as counting:
        node, executor = node_of(stage, counting, "count/1")
        process = executors_of(stage.cluster.run, node, stage.engine.application)[executor]
        stopped_s = time.monotonic()
        send(process, signal.SIGSTOP)
        assert stage.engine.end_silent(executor, "it has not reported for 12 s")
        await_flow(counting)
        assert time.monotonic() - stopped_s < RECOVERY_TARGET_S - default("executor.hung-after")
        counting.settle(lambda: not alive(process))
        assert not stage.engine.end_silent(executor, "it is gone")
        verdict = counting.verdict()
        assert verdict.exact, verdict


@pytest.mark.slow
@pytest.mark.parametrize("to_the_end", [False, True])
def test_with_too_few_seats_there_are_fewer_instances_until_there_are_more(
    stage: LocalCluster, to_the_end: bool
) -> None:
    """Two nodes of three have 16 seats; it has 19 instances. The node's worker is stopped meanwhile: on a slow machine
    a new executor would be there before the loss of the old one is noticed. A new executor must be past its start
    before all instances are back."""
    with stage.query("crowded", epoch_s=5.0, supervised=True) as counting:

        def splits() -> int:
            return sum(i.startswith("split/") for i in counting.executors())

        outcome = stage.engine.apply(Plan(rescales=(Rescale(counting.name, "split", 14),)))
        assert outcome.ok, outcome.refused
        node, executor = node_of(stage, counting, "count/1")
        with stopped(stage.cluster.run.leaders[node].pid):
            kill_executor(stage.cluster.run, node, executor)
            await_flow(counting)
            counting.settle(lambda: bool(counting.executors()))
            assert [r.cause for r in handle(counting).restarts] == [f"lost executor {executor} on {node}"]
            assert splits() == 11
        if to_the_end:
            counting.settle(lambda: splits() == 14, 120.0, look_s=0.5)
        verdict = counting.verdict()
        assert verdict.exact, verdict


@pytest.mark.slow
def test_preparing_a_new_executor_takes_no_seat_from_an_instance(stage: LocalCluster) -> None:
    """16 instances fill two nodes of three. The second kill comes while the executor that replaced the first one is
    being prepared for the instances that return to it."""
    with stage.query("full", epoch_s=20.0, supervised=True) as counting:
        outcome = stage.engine.apply(Plan(rescales=(Rescale(counting.name, "split", 11),)))
        assert outcome.ok, outcome.refused
        assert stage.engine.apply(Plan(stage.engine.observe().placement)).ok
        (node, executor), (other_node, other) = (node_of(stage, counting, f"count/{i}") for i in (1, 2))
        assert node != other_node
        kill_executor(stage.cluster.run, node, executor)
        await_flow(counting)
        counting.settle(lambda: len({w.executor for w in stage.engine.workers()} - {executor}) == 3, 60.0, look_s=0.05)
        kill_executor(stage.cluster.run, other_node, other)
        counting.settle(lambda: len(handle(counting).restarts) >= 2, 60.0)  # rows flow until it is noticed
        await_flow(counting)
        causes = [r.cause for r in handle(counting).restarts]
        assert len(causes) >= 2
        assert not [c for c in causes if "seats" in c], causes
        assert counting.verdict().exact


@pytest.mark.slow  # a new executor must be past its start first
def test_instances_return_to_the_slot_they_were_ordered_to(stage: LocalCluster) -> None:
    with stage.query(epoch_s=5.0, supervised=True) as counting:
        home = stage.engine.observe().placement
        assert stage.engine.apply(Plan(home)) == Outcome()  # all instances are there already
        node, executor = node_of(stage, counting, "count/1")
        kill_executor(stage.cluster.run, node, executor)
        await_flow(counting)
        counting.settle(lambda: bool(counting.executors()))
        assert stage.engine.observe().placement != home
        counting.settle(lambda: stage.engine.observe().placement == home, 120.0, look_s=0.5)
        verdict = counting.verdict()
        assert verdict.exact, verdict


def during(stage: LocalCluster, plan: Plan, fail: Callable[[], object]) -> Outcome:
    """Kill while the plan is being carried out."""
    found: list[Outcome] = []
    acting = threading.Thread(target=lambda: found.append(stage.supervisor.apply(plan)))
    acting.start()
    fail()
    acting.join(240)
    assert found, "the plan was never answered"
    return found[0]


def kill(stage: LocalCluster, what: str, node: str, executor: str) -> None:
    if what == "node":
        stage.cluster.kill_node(node)
    else:
        kill_executor(stage.cluster.run, node, executor)


EXECUTOR_OR_NODE = pytest.mark.parametrize("what", ["executor", pytest.param("node", marks=pytest.mark.slow)])


@EXECUTOR_OR_NODE
def test_killed_during_a_move_and_during_a_scale(
    stage: LocalCluster, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    with stage.query(supervised=True) as counting:
        node, executor = node_of(stage, counting, "count/1")
        other = next(w for w in stage.engine.workers() if w.slot.node != node)
        plan = Plan(Placement({Instance("wordcount", "count", 1): other.slot}))
        outcome = during(stage, plan, lambda: kill(stage, what, node, executor))
        assert outcome.ok, outcome.refused
        await_flow_without(counting, executor)
        print_times(capsys, f"{what} during a move", counting)
        counting.settle(lambda: bool(counting.executors()))
        assert counting.executors()["count/1"] == other.executor
        await_all_executors(stage)

        node, executor = node_of(stage, counting, "source/0")
        plan = Plan(rescales=(Rescale("wordcount", "split", 4),))
        outcome = during(stage, plan, lambda: kill(stage, what, node, executor))
        assert outcome.ok, outcome.refused
        await_flow_without(counting, executor)
        counting.settle(lambda: bool(counting.executors()))
        assert len([i for i in counting.executors() if i.startswith("split/")]) == 4
        verdict = counting.verdict()
        assert verdict.exact, verdict


ASKS_AND_HANGS = """
import sys
from dataclasses import replace
from pathlib import Path
from barograph.engines.spark.driver import epoch_bounds
from barograph.engines.spark.driver.client import RemoteEngine
engine = RemoteEngine(Path(sys.argv[1]))
engine.observe()
print("asked", flush=True)
while True:
    engine.observe()
"""


def test_hung_and_killed_clients_leave_the_topology_alone(stage: LocalCluster) -> None:
    with stage.query(supervised=True) as counting:
        epoch, lives = counting.epoch(), counting.executors()
        path = stage.supervisor.serve().path
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", ASKS_AND_HANGS, str(path)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == b"asked\n"
            client.send_signal(signal.SIGSTOP)
            out = counting.output()
            counting.settle(lambda: counting.output() > out + 100)
            another = RemoteEngine(path)
            assert another.observe().topology("wordcount").name == "wordcount"
            client.kill()
        assert another.status()["topologies"][0]["doing"] == "running"
        another.freeze()
        assert "frozen" in another.apply(Plan(cuts=("wordcount",))).refused[0].reason
        another.freeze(False)
        assert (counting.epoch(), counting.executors()) == (epoch, lives)
        assert another.apply(Plan(cuts=("wordcount",))).ok
        assert counting.verdict().exact


def test_a_bug_in_the_query_is_told_apart_from_a_lost_machine(stage: LocalCluster) -> None:
    def divide(words: DataFrame) -> DataFrame:
        bad_row = "if(partition = 0 and k = 2000, 0, 1)"
        return words.selectExpr("*", f"1 div {bad_row} as q").where("q is not null").drop("q")

    with stage.query("buggy", tamper=divide, supervised=True) as counting:
        query = handle(counting)
        with pytest.raises(StreamingQueryException, match="DIVIDE_BY_ZERO") as raised:
            query.awaitTermination(240)
        assert query.is_bug
        assert "3 times the same failure at epoch 0 with no executor lost" in query.gave_up_because
        assert query.gave_up_because in "".join(raised.value.__notes__)
        assert query.exception() is raised.value
        assert not query.isActive
        # The error of a task that lost its connection to the failing one may come first; that is another failure.
        assert sum("DIVIDE_BY_ZERO" in r.cause for r in query.restarts) == 2


def test_without_a_checkpoint_nothing_is_supervised(stage: LocalCluster) -> None:
    lines = stage.spark.readStream.format("org.apache.spark.barograph.ReplaySource")
    frame = lines.options(segments="0.0:1.0:10.0:10.0", partitions="1").load()
    with pytest.raises(BadInput, match="checkpointLocation"):
        stage.supervisor.start(
            lambda: frame.writeStream.format("noop").outputMode("update").trigger(realTime="5 seconds")  # type: ignore[call-overload]
        )


def test_a_checkpoint_on_a_file_system_without_atomic_rename_is_refused_in_one_sentence(stage: LocalCluster) -> None:
    lines = stage.spark.readStream.format("org.apache.spark.barograph.ReplaySource")
    frame = lines.options(segments="0.0:1.0:10.0:10.0", partitions="1").load()

    def build() -> DataStreamWriter:
        writer = frame.writeStream.format("noop").outputMode("update").option("checkpointLocation", "odd://here/counts")
        return real_time(writer, 5.0)

    with pytest.raises(IllegalArgumentException) as raised:
        stage.supervisor.start(build)
    (sentence,) = str(raised.value).splitlines()
    assert sentence.startswith("the checkpoint odd://here/counts is on a file system (odd) that is not known to rename")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seconds", "actions"),
    [
        pytest.param(
            75,
            ["10:scale split=4", "20:kill driver", "50:kill executor@node-2", "62:kill node@node-3"],
            id="everything once",
        ),
        pytest.param(
            70,
            ["12:scale split=4", "12:kill driver", "42:move count/1=node-1", "42:kill driver"],
            id="during a scale and a move",
        ),
        pytest.param(
            75, ["10:kill driver", "40:kill node@node-2", "55:start node@node-2"], id="a node that is started again"
        ),
    ],
)
def test_a_run_whose_driver_is_killed(seconds: int, actions: list[str]) -> None:
    """The whole command, without a cluster before: it does everything and counts every row once."""
    command = [
        sys.executable, "-m", "barograph.cli.main", "run", "wordcount", "--node-cpu", "2", "--seconds", str(seconds),
        "--load", "constant 300", "--epoch", "20s", "--format", "json",
        *(word for action in actions for word in ("--at", action)),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert (report["rows"]["lost"], report["rows"]["counted_twice"], report["rows"]["checksum_ok"]) == (0, 0, True)
    causes = [r["cause"] for r in report["restarts"]]
    assert causes[0] == "the driver was killed"
    assert any("on node-2" in c for c in causes) == any("@node-2" in a for a in actions)
    assert report["output"]["repeated"] > 0
    assert report["latency_ms"]["due"]["p50"] > 0
    assert [a["action"] for a in report["actions"] if not a["ok"]] == []
    assert len(report["actions"]) == len(actions)


PLAIN = """
import sys
from pyspark.sql import SparkSession
from barograph.engines.spark.conf import real_time_settings, workloads_settings
from barograph.engines.spark.cluster.java import java_home
from barograph.workloads.replay import FORMAT
import json, os, time
checkpoint, options = sys.argv[1], json.loads(sys.argv[2])
os.environ["JAVA_HOME"] = str(java_home())
builder = SparkSession.builder.master("local[8]").config("spark.ui.enabled", "false")
# Spark's list of sinks lacks noop, which the word count writes to.
builder = builder.config("spark.sql.streaming.realTimeMode.allowlistCheck", "false")
for key, value in {**real_time_settings(), **workloads_settings()}.items():  # the jars for the source alone
    builder = builder.config(key, value)
spark = builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
from barograph.workloads.keyed_counts import COUNT_SQL
from barograph.workloads.parts import LAST_TIMES_SQL, TIMES_SQL
from barograph.workloads.truth import CHECKSUM_SQL, WORDS_SQL
from barograph.workloads.wordcount import SINK_SQL
from pyspark.sql.functions import expr
lines = spark.readStream.format(FORMAT).options(**options).load().selectExpr("*", TIMES_SQL)
words = lines.repartition(2).selectExpr(*WORDS_SQL, "times")
counts = words.groupBy("word").agg(expr(COUNT_SQL), expr(CHECKSUM_SQL), expr(LAST_TIMES_SQL)).selectExpr(*SINK_SQL)
writer = counts.writeStream.queryName("wordcount").outputMode("update").format("noop")
query = writer.option("checkpointLocation", checkpoint).trigger(realTime="5 seconds").start()
deadline = time.monotonic() + 120
while not (query.lastProgress and query.lastProgress["numInputRows"] > 0):
    assert query.exception() is None, query.exception()
    assert time.monotonic() < deadline
    time.sleep(0.1)
query.stop()
print("moved on")
"""


@pytest.mark.slow
def test_a_checkpoint_moves_to_plain_spark_and_back(stage: LocalCluster) -> None:
    with stage.query(supervised=True, epoch_s=5.0) as counting:
        assert stage.supervisor.apply(Plan(cuts=("wordcount",))).ok
        counting.query.stop()
        before = max(int(f.name) for f in (counting.checkpoint / "commits").iterdir() if f.name.isdecimal())
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        arguments = [str(counting.checkpoint), json.dumps(replace(counting.inputs[0], read_time=True).options())]
        done = subprocess.run(
            [sys.executable, "-c", PLAIN, *arguments],
            env=environment, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert "moved on" in done.stdout, done.stderr[-3000:]
        between = max(int(f.name) for f in (counting.checkpoint / "commits").iterdir() if f.name.isdecimal())
        assert between > before
        with stage.continued(counting) as back:
            verdict = back.verdict()
            assert verdict.exact, verdict
