"""The bench of Kafka: what it says of a lag, of CPU and of shares, from made-up runs; and a real broker's ends."""

import time
from typing import Any

import pytest
from bench._kafka.cpu import CpuOverTime, kind_of
from bench._kafka.ends import BrokerAsked, Ends, EndsWatched
from bench._kafka.told import Told
from bench._whole_run import is_exact
from tests.fetched import needs_kafka
from tests.polling import until

from barograph.kafka import Login, start_broker
from barograph.kafka.feed import start_feed
from barograph.model import Load
from barograph.workloads.replay import Replay
from bench import kafka


def told(seen: list[int | None], read: list[int], at_s: list[float], ends: Ends | None = None) -> Told:
    n = len(at_s)
    by_second: dict[str, list[Any]] = {
        "at_s": at_s, "due_rows_s": [100.0] * n, "read_rows_s": [50] * n, "all_read_rows": read,
        "backlog_rows": [600, 300, 50][:n], "seen_backlog_rows": seen,
    }  # fmt: skip
    series = {"at_s": [2.0, 6.0], "reserved_pct": [10.0, 20.0], "limit_pct": [10.0, None]}
    report = {"by_second": by_second, "start_ms": 50_000, "seconds": 10.0, "operators": {"wordcount/split": series}}
    return Told(report, ends)


def asked() -> Ends:
    """100 rows a second from second 50 on, asked for ten times a second; an answer takes 20 ms."""
    ends = Ends()
    for k in range(200):
        ends.put(50.0 + k / 10, 50.02 + k / 10, 10 * k)
    return ends


def test_a_lag_is_right_if_it_was_true_within_the_last_second() -> None:
    at_s, read = [5.0, 6.0, 7.0], [200, 250, 300]
    assert told([300, 350, 400], read, at_s, asked()).lag_errors() == [0.0, 0.0, 0.0], "as it is now"
    assert told([200, 250, 300], read, at_s, asked()).lag_errors() == [0.0, 0.0, 0.0], "as it was a second ago"
    assert told([180, 390, 300], read, at_s, asked()).lag_errors() == [10.0, 40.0, 0.0], "too old, and too high"
    assert told([0, None, 300], read, at_s, asked()).lag_errors() == [190.0, float("inf"), 0.0]
    assert told([0, 0, 0], read, at_s).lag_errors() == [], "not from a topic"


def test_figures_of_catching_up() -> None:
    run = told([0, 0, 0], [0, 50, 100], [4.0, 5.0, 6.0])
    assert (run.caught_up_s(), run.rows_s(), run.written()) == (2.0, 50, 1.0)
    # At second 4 there are 400 rows in the topic, and 600 were due.
    assert told([0, 0, 0], [0, 50, 100], [4.0, 5.0, 6.0], asked()).written() == pytest.approx(400 / 600)
    # 10 % until second 6, 20 % for the last four; without a limit an instance may use a core.
    assert run.reserved() == {"split": pytest.approx((2 * 10 + 4 * 20) / 6)}
    assert run.limit_core_s() == pytest.approx(2 * 0.1 + 4 * 1.0)


def behind(*backlog: int, every_s: float = 1.0) -> Told:
    """A run of a minute at 300 rows a second, from its 60th second on."""
    run = told([], [], [])
    lines = {
        "at_s": [60.0 + k * every_s for k in range(len(backlog))], "due_rows_s": [300.0] * len(backlog),
        "read_rows_s": [500] * len(backlog), "all_read_rows": [0] * len(backlog), "backlog_rows": list(backlog),
        "seen_backlog_rows": list(backlog),
    }  # fmt: skip
    rows = {"lost": 0, "counted_twice": 0, "checksum_ok": True, "due": 100}
    return Told({**run.report, "by_second": lines, "seconds": 120.0, "rows": rows, "lines": {"undrained": 0}})


def missed(runs: dict[str, Told]) -> set[str]:
    return {bar.name for bar in kafka.bars(runs) if not bar.met}


def test_two_runs_that_never_catch_up_are_no_success() -> None:
    never, soon, at_once = behind(18000, 17000, 16000), behind(18000, 9000, 100), behind(0, 0, 0)
    caught = "adaptive catches up before the load ends"
    assert caught in missed({"adaptive": never, "fixed": never})
    assert caught not in missed({"adaptive": soon, "fixed": never})
    start = "seconds of load that the query starts behind"
    assert start in missed({"adaptive": at_once, "fixed": at_once})
    assert start not in missed({"adaptive": soon, "fixed": never})


def test_a_throughput_needs_some_seconds() -> None:
    name = "seconds over which the throughput is a median"
    slow, quick = behind(*range(18000, 12000, -1000), 0), behind(18000, 9000, 0)
    assert (slow.busy_seconds(), slow.rows_s(), behind(0, 0).rows_s()) == (5, 500, 0.0)
    assert name not in missed({"kafka": slow, "replay": slow})
    assert name in missed({"kafka": slow, "replay": quick})


def test_a_result_with_another_checksum_is_not_exact() -> None:
    run = behind(0)
    assert is_exact(run.report)
    assert not is_exact({**run.report, "rows": {**run.report["rows"], "checksum_ok": False}})


def test_cpu_is_of_the_load_and_by_kind() -> None:
    cpu = CpuOverTime()
    for second in range(20):
        cpu.put(50.0 + second, {"executors": 2.0 * second, "producer": 1.0 + second})
    found = cpu.between(53.2, 58.9)
    assert (found["executors"], found["producer"], found["broker"]) == (12.0, 6.0, 0.0)
    commands = {
        "java -cp x org.apache.spark.barograph.source.TopicFeed /tmp/feed.properties": "producer",
        "java org.apache.spark.executor.CoarseGrainedExecutorBackend --driver-url x": "executors",
        "python -m barograph.control.process 12 {}": "controller",
        "java org.apache.spark.deploy.SparkSubmit pyspark-shell": "driver",
        "python -m barograph.cli.main run wordcount": "driver",
        "java org.apache.spark.deploy.worker.Worker spark://h:1": "cluster",
    }
    assert {command: kind_of(command) for command in commands} == commands


@pytest.mark.spark
@pytest.mark.slow
def test_a_backlog_is_in_the_topic_when_the_feed_has_caught_up() -> None:
    needs_kafka()
    login = Login("bench", "s3cret")
    load = Replay(Load.parse("constant 20000").schedule(3600.0), partitions=3, close_s=3600.0)
    options = {name: value for name, value in load.options().items() if name != "start_ms"}
    with (
        start_broker(login=login) as broker,
        EndsWatched(broker.address, login, "fed", "-0") as watched,
        start_feed("fed-0", broker.address, login.options(), options) as feed,
    ):
        feed.await_ready()
        begun_s = time.time()
        feed.begin(int((begun_s - 20.0) * 1000))
        until(feed.has_caught_up)
        caught_up_s = time.time()
        asking = BrokerAsked(broker.address, login)
        assert asking.partitions()["fed-0"] == 3
        end = asking.end("fed-0", range(3))
        asking.close()
        # The load began in a whole millisecond, at most one before 20 s ago.
        assert 20000 * 20 <= end <= 20000 * (20.001 + time.time() - begun_s) + 1
        until(lambda: bool(watched.failure) or watched.ends.least_at(time.time()) >= end)
        assert not watched.failure
        assert watched.ends.most_at(begun_s) < end, "and not from the beginning"
        assert watched.ends.least_at(caught_up_s) <= end
        assert not feed.is_done()
