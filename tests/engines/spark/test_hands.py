"""Placing, cutting and scaling on a real cluster, checked by where each instance's own thread reported itself from."""

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

import pytest
from pyspark.sql.functions import col

from barograph.engines.spark.conf import IN_FLIGHT_MS, in_flight
from barograph.engines.spark.query.naming import named
from barograph.model import Grouping, Instance, MigrationMode, Placement, Plan, Rescale, Slot
from barograph.testing.local_cluster import LocalCluster, RunningQuery
from barograph.workloads import wordcount
from barograph.workloads.parts import SOURCE_FIXED
from barograph.workloads.replay import FORMAT

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def stage(shared_stage: LocalCluster) -> LocalCluster:
    return shared_stage


def slots(stage: LocalCluster) -> dict[str, Slot]:
    """Executor -> slot."""
    return {w.executor: w.slot for w in stage.engine.observe().workers}


def test_the_topology_is_discovered_without_annotation(stage: LocalCluster) -> None:
    with stage.query(supervised=True):
        found = stage.engine.observe().topology("wordcount")
        assert found == wordcount.topology({"source": 2, "split": 2, "count": 3})
        workers = stage.engine.observe().workers
        assert sorted(str(w.slot) for w in workers) == ["node-1/0", "node-2/0", "node-3/0"]
        assert {w.seats for w in workers} == {8}


class TestWhileOneQueryRuns:
    """All with one query; whatever they do, in the end each row is counted once."""

    @pytest.fixture(scope="class")
    def counting(self, stage: LocalCluster) -> Iterator[RunningQuery]:
        with stage.query(epoch_s=600.0) as started:  # no epoch ends by itself
            yield started
            verdict = started.verdict()
            assert verdict.exact, verdict

    @pytest.fixture(autouse=True)
    def everything_is_up(self, counting: RunningQuery) -> None:
        counting.settle(lambda: bool(counting.executors()))

    def test_every_instance_runs_where_the_plan_says(self, stage: LocalCluster, counting: RunningQuery) -> None:
        draw = random.Random(11)
        where = slots(stage)
        instances = list(stage.engine.observe().topology("wordcount").instances())
        seen_epochs = set()
        for _ in range(6):
            wanted = {i: draw.choice(sorted(where)) for i in instances}
            outcome = stage.engine.apply(Plan(Placement({i: where[e] for i, e in wanted.items()})))
            assert outcome.ok, outcome.refused
            counting.settle(lambda: bool(counting.executors()))
            assert counting.executors() == {f"{i.operator}/{i.index}": e for i, e in wanted.items()}
            seen_epochs.add(counting.epoch())
        assert len(seen_epochs) == 6

    def test_a_move_touches_only_the_moved_instance(self, stage: LocalCluster, counting: RunningQuery) -> None:
        before = counting.executors()
        where = slots(stage)
        other = next(e for e in sorted(where) if e != before["count/1"])
        outcome = stage.engine.apply(Plan(Placement({Instance("wordcount", "count", 1): where[other]})))
        assert outcome.ok, outcome.refused
        assert [d for d in outcome.done if d.startswith("moved")] == [
            f"moved wordcount/count/1 from {where[before['count/1']]} to {where[other]}"
        ]
        counting.settle(lambda: bool(counting.executors()))
        assert counting.executors() == {**before, "count/1": other}

    def test_a_warm_cut_is_delayed_and_the_topology_runs_meanwhile(
        self, stage: LocalCluster, counting: RunningQuery
    ) -> None:
        where = slots(stage)
        other = next(e for e in sorted(where) if e != counting.executors()["count/1"])
        epoch, ordered_s = counting.epoch(), time.monotonic()
        move = Placement({Instance("wordcount", "count", 1): where[other]})
        outcome = stage.engine.apply(Plan(move, mode=MigrationMode.WARM_CUT, delay_s=1.5))
        assert outcome.ok, outcome.refused
        assert time.monotonic() - ordered_s >= 1.5
        assert counting.epoch() == epoch + 1
        counting.settle(lambda: bool(counting.executors()))
        assert counting.executors()["count/1"] == other

    def test_moves_and_scales_of_one_plan_share_one_cut(self, stage: LocalCluster, counting: RunningQuery) -> None:
        epoch = counting.epoch()
        plan = Plan(
            Placement({Instance("wordcount", "count", i): Slot("node-1") for i in range(3)}),
            (Rescale("wordcount", "split", 3),),
        )
        outcome = stage.engine.apply(plan)
        assert outcome.ok, outcome.refused
        assert counting.epoch() == epoch + 1
        assert stage.engine.apply(plan).done == ()
        assert counting.epoch() == epoch + 1

    def test_an_impossible_plan_is_refused_and_nothing_changes(
        self, stage: LocalCluster, counting: RunningQuery
    ) -> None:
        before, epoch = stage.engine.observe(), counting.epoch()
        source = stage.engine.apply(Plan(rescales=(Rescale("wordcount", "source", 4),)))
        assert [r.reason for r in source.refused] == [SOURCE_FIXED]
        count = stage.engine.apply(Plan(rescales=(Rescale("wordcount", "count", 4),)))
        assert [r.reason for r in count.refused] == [
            "its state is split over its instances: changing their number takes a repartition of the state"
        ]
        full = stage.engine.apply(Plan(rescales=(Rescale("wordcount", "split", 20),)))
        assert "24 seats" in full.refused[0].reason
        stale = stage.engine.apply(Plan(cuts=("wordcount",), version=before.version + 7))
        assert "made from state" in stale.refused[0].reason
        mode = stage.engine.apply(Plan(cuts=("wordcount",), mode=MigrationMode.WORKER))
        assert not mode.ok
        after = stage.engine.observe()
        assert (after.placement, after.version, counting.epoch()) == (before.placement, before.version, epoch)

    def test_batch_and_micro_batch_queries_run_unchanged(self, stage: LocalCluster, counting: RunningQuery) -> None:
        spark = stage.spark
        epoch = counting.epoch()
        counts = spark.range(0, 10_000, 1, 4).groupBy((col("id") % 7).alias("k")).count().collect()
        assert sum(r["count"] for r in counts) == 10_000
        rows = (
            spark.readStream.format(FORMAT).options(**counting.inputs[0].options()).load().groupBy("partition").count()
        )
        query = (
            rows.writeStream.queryName("beside").outputMode("complete").format("memory")
            .trigger(processingTime="0 seconds").start()
        )  # fmt: skip
        try:
            counting.settle(lambda: spark.sql("select * from beside").count() == 2)
            assert "OperatorExec" not in query._jsq.explainInternal(False)
            assert "beside" not in {t.name for t in stage.engine.observe().topologies}
        finally:
            query.stop()
        assert counting.epoch() == epoch

    def test_os_threads_are_those_of_the_executors(self, stage: LocalCluster, counting: RunningQuery) -> None:
        epoch = stage.engine.present("wordcount")
        assert epoch is not None
        pids = {pid for node in stage.cluster.status() for pid in node.pids}
        for life in epoch.lives.values():
            assert life.pid in pids
            comm = Path(f"/proc/{life.pid}/task/{life.tid}/comm").read_text()
            assert comm.startswith("Executor task")
        assert counting.query.isActive

    def test_simultaneous_cuts_are_all_carried_out(self, stage: LocalCluster, counting: RunningQuery) -> None:
        """Cuts ordered from several threads at once are each done or find their epoch already ended; none is lost."""
        epoch = counting.epoch()
        with ThreadPoolExecutor(3) as threads:
            orders = [threads.submit(stage.engine.apply, Plan(cuts=("wordcount",))) for _ in range(3)]
            outcomes = [order.result(60.0) for order in orders]
        assert [o.refused for o in outcomes] == [()] * 3
        ended = {sentence for o in outcomes for sentence in o.done}
        assert [len(o.done) for o in outcomes] == [1] * 3
        assert 1 <= len(ended) <= 3
        assert ended == {f"cut wordcount after epoch {e}" for e in range(epoch, epoch + len(ended))}
        assert counting.epoch() == epoch + len(ended)


def test_split_is_scaled_while_it_runs_with_exact_counts(stage: LocalCluster) -> None:
    with stage.query(rate=1500) as counting:
        for parallelism in (4, 1, 3):
            out = counting.output()
            outcome = stage.engine.apply(Plan(rescales=(Rescale("wordcount", "split", parallelism),)))
            assert outcome.ok, outcome.refused
            counting.settle(lambda: bool(counting.executors()))
            splits = [i for i in counting.executors() if i.startswith("split/")]
            assert len(splits) == parallelism
            counting.settle(lambda before=out: counting.output() > before)  # type: ignore[misc]
        verdict = counting.verdict()
        assert verdict.exact, verdict


def test_two_queries_one_cut_the_other_not_disturbed(stage: LocalCluster) -> None:
    with stage.query("first") as first, stage.query("second") as second:
        epoch, lives = second.epoch(), second.executors()
        for _ in range(3):
            assert stage.engine.apply(Plan(cuts=("first",))).ok
        assert first.epoch() >= 3
        out = second.output()
        second.settle(lambda: second.output() > out)
        assert (second.epoch(), second.executors()) == (epoch, lives)
        move = Plan(Placement({Instance("second", "count", 0): Slot("node-2")}), (Rescale("first", "split", 1),))
        assert stage.engine.apply(move).ok
        second.settle(lambda: bool(second.executors()))
        where = slots(stage)
        assert where[second.executors()["count/0"]] == Slot("node-2")
        assert first.verdict().exact
        assert second.verdict().exact


def test_a_late_order_cuts_no_later_epoch(stage: LocalCluster) -> None:
    """An executor gets the order to cut a second late, when the next epoch already runs: that epoch must go on."""
    with stage.query() as counting:
        late = sorted(slots(stage))[0]
        where = slots(stage)
        # No source on the late executor: the epoch then ends before the executor has the order.
        others = [s for e, s in where.items() if e != late]
        away = {Instance("wordcount", "source", i): others[i] for i in range(2)}
        assert stage.engine.apply(Plan(Placement(away))).ok
        with delayed_orders(stage, late, 1500):
            epoch = counting.epoch()
            assert stage.engine.apply(Plan(cuts=("wordcount",))).ok
            assert counting.epoch() == epoch + 1
            back = {Instance("wordcount", "source", i): where[late] for i in range(2)}
            assert stage.engine.apply(Plan(Placement(back))).ok  # the sources now read where orders come late
            epoch = counting.epoch()
            deadline = time.monotonic() + 3
            while time.monotonic() < deadline:
                stage.engine.refresh()
                assert counting.epoch() == epoch
                time.sleep(0.1)
        assert counting.verdict().exact


@contextmanager
def delayed_orders(stage: LocalCluster, executor: str, ms: int) -> Iterator[None]:
    delay_orders(stage, executor, ms)
    try:
        yield
    except BaseException:
        with suppress(AssertionError):  # an executor that is gone cannot be reset, and must not hide what failed
            delay_orders(stage, executor, 0)
        raise
    delay_orders(stage, executor, 0)


def delay_orders(stage: LocalCluster, executor: str, ms: int) -> None:
    call = f"reflect('org.apache.spark.barograph.testing.DelayedOrders', 'on', '{executor}', cast({ms} as bigint))"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        frame = stage.spark.range(0, 64, 1, 16).selectExpr(f"{call} as here")
        if executor in {r["here"] for r in frame.collect()}:
            return
    raise AssertionError(f"no task ran on executor {executor}; there are {stage.engine.living()}")


def test_a_setting_reaches_every_executor_of_a_running_application(stage: LocalCluster) -> None:
    stage.turn(in_flight(IN_FLIGHT_MS / 1000))  # raises if one is not reached


def test_a_tampered_stream_is_noticed(stage: LocalCluster) -> None:
    """Drop one word of one line and repeat one word of another: 1 lost, 1 counted twice."""

    def tamper(words):  # type: ignore[no-untyped-def]
        here = "partition = 0 and k = {} and position = 0"
        kept = words.where(f"not ({here.format(3)})")
        return kept.selectExpr("*", f"explode(sequence(1, if({here.format(4)}, 2, 1))) as again").drop("again")

    with stage.query(tamper=tamper) as counting:
        counting.settle(lambda: counting.output() > 200)
        verdict = counting.verdict()
        lines = counting.inputs[0].lines
        assert lines.line(0, 3).split()[0] != lines.line(0, 4).split()[0], "the two words must differ"
        assert (verdict.lost, verdict.counted_twice, verdict.checksum_ok) == (1, 1, False)


def test_names_come_from_the_plan_or_from_the_user(stage: LocalCluster) -> None:
    spark = stage.spark
    replay = {"segments": "0.0:1.0:100.0:100.0", "partitions": "2"}
    lines = spark.readStream.format(FORMAT).options(**replay).load()
    spread = named(lines.repartition(2).where("k >= 0"), "spread")
    single = spread.repartition(1).where("k >= 0")
    distinct = single.dropDuplicates(["partition", "k"])
    query = (
        distinct.writeStream.queryName("shapes").outputMode("update").format("noop")
        .trigger(realTime="5 seconds").start()  # type: ignore[call-overload]
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while "shapes" not in {t.name for t in stage.engine.observe().topologies}:
            assert query.exception() is None, query.exception()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        topology = stage.engine.observe().topology("shapes")
        assert [(o.name, o.stateful, o.source) for o in topology.operators] == [
            ("source", False, True), ("spread", False, False), ("map", False, False), ("deduplicate", True, False),
        ]  # fmt: skip
        assert [e.grouping for e in topology.edges] == [Grouping.SHUFFLE, Grouping.GLOBAL, Grouping.FIELDS]
        refused = stage.engine.apply(Plan(rescales=(Rescale("shapes", "map", 2),))).refused
        assert [r.reason for r in refused] == ["a global grouping has exactly one instance"]
    finally:
        query.stop()


WITHIN_MS = 200


@pytest.fixture
def auto_again(stage: LocalCluster) -> Iterator[None]:
    """The way in which limits are held may be changed."""
    yield
    stage.engine.enforce("auto")


@pytest.mark.usefixtures("auto_again")
@pytest.mark.parametrize("way", ["cooperative", "cgroup"])
def test_a_limit_takes_effect_at_once_and_in_the_next_epochs(stage: LocalCluster, way: str) -> None:
    """An instance that could use a core gets a twentieth of one, also after a cut, and then more again."""
    if way == "cgroup" and stage.cluster.run.groups is None:
        pytest.skip(stage.cluster.run.unfenced_because)
    stage.engine.enforce(way)
    name = f"shared-{way}"
    with stage.query(name, rate=1_000_000) as counting:
        split = Instance(name, "split", 0)
        throttled_s: list[float] = []

        def cpu_pct() -> float:
            """Over two seconds, by the thread's own clock as the engine reports it when it is observed; not from the
            change of a limit, when a new epoch still begins."""
            start = time.monotonic()
            counting.settle(lambda: time.monotonic() > start + 0.5)
            stage.engine.observe()
            counting.settle(lambda: time.monotonic() > start + 2.5)
            seen = stage.engine.observe()
            throttled_s.append(seen.metrics.row(split).throttled_s)
            return 100 * seen.metrics.row(split).cpu_s / seen.cycle_s

        def await_more_than(pct: float) -> None:
            """Code must be compiled and queues must fill before an instance can use much."""
            deadline = time.monotonic() + 60
            while (found := cpu_pct()) <= pct:
                assert time.monotonic() < deadline, f"it uses {found:.1f} %"

        def await_less_than(pct: float) -> None:
            """Reports of a busy machine come late, and the first ones of an epoch count its beginning."""
            deadline = time.monotonic() + 30
            while (found := cpu_pct()) >= pct:
                assert time.monotonic() < deadline, f"it uses {found:.1f} %"

        def bites_after_ms(limit_pct: float) -> int:
            """From an order until the instance's own thread, or its group, goes by it, as its executor notes it."""
            ordered_ms = int(time.time() * 1000)
            assert stage.engine.apply(Plan(limits_pct={split: limit_pct})).ok
            deadline = time.monotonic() + 30
            while (found := stage.engine.held_since_ms().get(split, 0)) < ordered_ms:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            return found - ordered_ms

        await_more_than(12)
        outcome = stage.engine.apply(Plan(limits_pct={split: 5.0}))
        assert outcome.ok, outcome.refused
        assert outcome.left_out == ()
        assert outcome.order_to_commit_s is None
        await_less_than(7)
        assert throttled_s[-1] > 0.5
        assert {e.enforces for e in stage.engine.live_executors} == {way}
        assert stage.engine.apply(Plan(cuts=(name,))).ok
        await_less_than(7)
        assert stage.engine.apply(Plan(limits_pct={split: 60.0})).ok
        await_more_than(12)
        # The best counts: other load on the machine only adds to it.
        late_ms = [bites_after_ms(pct) for pct in (10.0, 11.0, 12.0, 13.0, 14.0)]
        assert min(late_ms) <= WITHIN_MS, late_ms
        assert counting.verdict().exact


@pytest.mark.usefixtures("auto_again")
def test_an_error_of_control_groups_is_said_and_tried_again_and_limits_are_held_meanwhile(stage: LocalCluster) -> None:
    groups = stage.cluster.run.groups
    if groups is None or groups.version != 1:
        pytest.skip("needs control groups of version 1")
    stage.engine.enforce("cgroup")
    ways, said = set[str](), list[str]()

    def problem() -> bool:
        found = [e for e in stage.engine.live_executors if e.enforces_because]
        ways.update(e.enforces for e in found)
        said.extend(e.enforces_because for e in found)
        return bool(found)

    with stage.query("refused", rate=2000) as counting:
        split, there = Instance("refused", "split", 0), "*/barograph-*/refused@split@0"
        assert stage.engine.apply(Plan(limits_pct={split: 10.0})).ok
        counting.settle(lambda: list(groups.path.glob(there)) != [], 30.0)
        # The kernel refuses a group more than the group around it has.
        (next(groups.path.glob(there)).parent / "cpu.cfs_quota_us").write_text("20000")
        assert stage.engine.apply(Plan(limits_pct={split: 50.0})).ok
        counting.settle(problem, 60.0)
        assert "tried again" in said[0] and "cpu.cfs_quota_us" in said[0]
        counting.settle(lambda: not problem() and {e.enforces for e in stage.engine.live_executors} == {"cgroup"}, 90.0)
        assert ways == {"cooperative"}
        counting.settle(lambda: list(groups.path.glob(there)) != [], 30.0)
        assert counting.verdict().exact


@pytest.mark.slow
@pytest.mark.parametrize("rate", [10, 240, 33_000], ids=str)
def test_latency_is_as_low_a_second_after_a_boundary_as_before_it(stage: LocalCluster, rate: int) -> None:
    """A buffer that waits to be filled adds tens of milliseconds at such a rate, for seconds after every boundary. The
    second that begins one second after a cut is compared with the second before it; medians over several cuts."""

    def passes(seconds: float) -> None:
        until_s = time.monotonic() + seconds
        counting.settle(lambda: time.monotonic() > until_s)

    def p50_ms() -> float:
        while True:
            stage.engine.observe()
            passes(1.0)
            (metrics,) = stage.engine.observe().topology_metrics
            if metrics.latency_due is not None:
                return metrics.latency_due.p50

    before_ms, after_ms = [], []
    with stage.query(rate=rate) as counting:
        passes(4.0)  # until its code is compiled
        for _ in range(3):
            before_ms.append(p50_ms())
            assert stage.engine.apply(Plan(cuts=("wordcount",))).ok
            passes(1.0)
            after_ms.append(p50_ms())
    assert median(after_ms) <= median(before_ms) + 10.0, (before_ms, after_ms)


def test_a_query_may_have_any_name_and_disturbs_no_other(stage: LocalCluster) -> None:
    with stage.query("a b/c=d,e@f") as odd, stage.query("plain") as plain:
        assert {t.name for t in stage.engine.observe().topologies} >= {"a b/c=d,e@f", "plain"}
        for counting in (odd, plain):
            assert stage.engine.apply(Plan(cuts=(counting.name,))).ok
            assert counting.verdict().exact
