"""Nodes and controllers start, end, hang and die during a word count: it goes on, and each row is counted once."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.polling import until

from barograph.control.decide import decide
from barograph.control.process import ControllerConfig, keep
from barograph.engines.spark.cluster.node_keeper import order_down, order_up
from barograph.engines.spark.cluster.node_limit import RunGroups
from barograph.engines.spark.cluster.node_status import executors_of
from barograph.engines.spark.driver.client import RemoteEngine
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.history import entries, gaps
from barograph.history.files import parts
from barograph.model import Instance, MigrationMode, Outcome, Placement, Plan, RefusalCode, Slot, Snapshot
from barograph.policy.registry import named
from barograph.testing.local_cluster import LocalCluster, RunningQuery

pytestmark = pytest.mark.spark
LONG_S = 600.0  # so that no epoch ends by itself


@pytest.fixture(scope="module", autouse=True)
def own_state() -> None:
    """That of the shared cluster: it is started again in part, which needs its folder."""


@pytest.fixture(scope="module")
def stage(kept_stage: LocalCluster) -> LocalCluster:
    return kept_stage


@pytest.fixture
def driver(stage: LocalCluster) -> Iterator[RemoteEngine]:
    engine = RemoteEngine(stage.supervisor.serve().path)
    yield engine
    engine.close()


def there(stage: LocalCluster) -> set[str]:
    return {w.slot.node for w in stage.engine.workers()}


def gathered(counting: RunningQuery, node: str) -> None:
    """Move all instances to one node."""
    found = Placement({i: Slot(node) for i in counting.cluster.engine.observe().topology(counting.name).instances()})
    outcome = counting.cluster.supervisor.apply(Plan(found))
    assert outcome.ok, outcome.refused


def evenly(now: Snapshot) -> Plan:
    return replace(decide(named("even"), [], now).plan, mode=MigrationMode.CUT)


def restarts(counting: RunningQuery) -> int:
    assert isinstance(counting.query, Supervised)
    return len(counting.query.restarts)


@pytest.mark.slow
def test_exactly_the_named_nodes_are_released_and_fetched(stage: LocalCluster, driver: RemoteEngine) -> None:
    with stage.query(supervised=True, epoch_s=LONG_S) as counting:
        gathered(counting, "node-1")
        epoch, lives = counting.epoch(), counting.executors()
        (kept,) = driver.keep_nodes(release=["node-1"]).left_out
        assert (kept.node, kept.code, kept.what) == ("node-1", RefusalCode.NODE_IN_USE, "release of node-1")
        assert kept.reason.startswith("wordcount/") and kept.reason.endswith(" has its seat there")
        (kept,) = driver.keep_nodes(fetch=["node-1"]).left_out
        assert (kept.code, kept.reason) == (RefusalCode.NOT_RELEASED, "it was not released")

        assert driver.keep_nodes(release=["node-2", "node-3"]) == Outcome(("released node-2", "released node-3"))
        counting.settle(lambda: there(stage) == {"node-1"})
        now = driver.observe()
        assert ([n.name for n in now.nodes], [n.name for n in now.asleep]) == (["node-1"], ["node-2", "node-3"])
        assert [n["released"] for n in driver.status()["nodes"]] == [False, True, True]
        out = counting.output()
        counting.settle(lambda: counting.output() > out + 2000)  # time in which the node keeper must not start them
        assert [n.alive for n in stage.cluster.status()] == [True, False, False]
        assert (counting.epoch(), counting.executors(), restarts(counting)) == (epoch, lives, 0)

        one = Instance(counting.name, "count", 1)
        (refused,) = driver.apply(Plan(Placement({one: Slot("node-3")}))).refused
        assert refused.reason == "node-3 is released; there are node-1"
        assert driver.keep_nodes(fetch=["node-3"]) == Outcome(("fetched node-3",))
        counting.settle(lambda: there(stage) == {"node-1", "node-3"}, 120.0)
        assert [n.name for n in driver.observe().asleep] == ["node-2"]
        outcome = driver.apply(Plan(Placement({one: Slot("node-3")})))
        assert outcome.ok, outcome.refused
        assert driver.keep_nodes(fetch=["node-2"]) == Outcome(("fetched node-2",))
        assert restarts(counting) == 0
        verdict = counting.verdict()
        assert verdict.exact, verdict
    until(lambda: len(there(stage)) == 3)


def done(history: Path) -> list[str]:
    """What was done in all recorded cycles."""
    found = [e.cycle.outcome for e in entries(history) if e.cycle] if parts(history) else []
    return [sentence for outcome in found if outcome for sentence in outcome.done]


def recorded(history: Path) -> int:
    """How many cycles are recorded, without the gaps."""
    return sum(e.cycle is not None for e in entries(history)) if parts(history) else 0


@pytest.mark.slow
def test_a_controller_that_dies_or_hangs_is_restarted_and_rows_flow(stage: LocalCluster, tmp_path: Path) -> None:
    history, longest_s = tmp_path / "history", [60.0]
    socket = str(stage.supervisor.serve().path)
    config = ControllerConfig(
        socket, str(history), str(tmp_path / "beat"), "adaptive", 1.0, options={"mode": "cut"}, release_after_s=4.0,
        spare_nodes=0,
    )  # fmt: skip
    with (
        stage.query(rate=50, supervised=True) as counting,
        # A controller says how long a step may take; one that is known to be stopped need not be waited for.
        keep(config, tmp_path / "log", patience=lambda s: min(s, longest_s[0])) as keeper,
    ):
        # The load is low, so few nodes are enough and the others are released.
        until(lambda: bool(stage.engine.observe("test").asleep), 150.0)
        # Wait for the record too: a cycle in which the controller is killed is not recorded.
        until(lambda: any(sentence.startswith("released node-") for sentence in done(history)))
        for number in (signal.SIGKILL, signal.SIGSTOP):
            starts, epoch, out = keeper.starts, counting.epoch(), counting.output()
            keeper.process.send_signal(number)
            counting.settle(lambda out=out: counting.output() > out + 100)  # type: ignore[misc]  # bound at once
            assert counting.epoch() >= epoch
            longest_s[0] = 2.0 if number is signal.SIGSTOP else 60.0
            until(lambda starts=starts: keeper.starts > starts, look_s=0.02)  # type: ignore[misc]
            longest_s[0] = 60.0
            known = recorded(history)
            until(lambda known=known: recorded(history) > known)  # type: ignore[misc]
        assert restarts(counting) == 0
        keeper.close()
        verdict = counting.verdict()
        assert verdict.exact, verdict
    assert any(s == "the controller ended with code -9" for s in keeper.said), keeper.said
    assert any(s.startswith("the controller hung (") for s in keeper.said), keeper.said
    found = list(entries(history))
    assert sum(e.gap is not None for e in found) >= 2
    assert gaps(history, most_cycles=1e9) == []
    stage.supervisor.keep_nodes(fetch=stage.supervisor.node_release.released())
    until(lambda: len(there(stage)) == 3)


def test_a_node_that_dies_is_left_out_and_one_that_joins_is_used(stage: LocalCluster, driver: RemoteEngine) -> None:
    with stage.query(supervised=True, epoch_s=LONG_S) as counting:
        gathered(counting, "node-1")
        before = driver.observe()
        order_down(stage.cluster.run, "node-2")
        stage.cluster.kill_node("node-2")
        counting.settle(lambda: there(stage) == {"node-1", "node-3"})
        stale = Plan(Placement({Instance(counting.name, "count", 0): Slot("node-3")}), version=before.version)
        epoch = counting.epoch()
        (refused,) = driver.apply(stale).refused
        assert refused.what == "the plan" and refused.reason.startswith(f"it was made from state {before.version} ")
        assert counting.epoch() == epoch and counting.executors()["count/0"] == counting.executors()["count/1"]

        now = driver.observe()
        assert ([n.name for n in now.nodes], now.asleep) == (["node-1", "node-3"], ())
        plan = evenly(now)
        assert {s.node for s in plan.placement.slots.values()} == {"node-3"}, "half of them move, none to the dead node"
        driver.freeze()
        assert "frozen" in driver.apply(plan).refused[0].reason
        (kept,) = driver.keep_nodes(release=["node-3"]).left_out
        assert (kept.node, kept.code) == ("node-3", RefusalCode.FROZEN)
        driver.freeze(False)
        outcome = driver.apply(plan)
        assert outcome.ok, outcome.refused

        order_up(stage.cluster.run, "node-2")
        counting.settle(lambda: len(there(stage)) == 3, 120.0)
        outcome = driver.apply(evenly(driver.observe()))
        assert outcome.ok, outcome.refused
        assert {s.node for s in driver.observe().placement.slots.values()} == {"node-1", "node-2", "node-3"}
        assert restarts(counting) == 0, "no instance ran on the node that died"
        verdict = counting.verdict()
        assert verdict.exact, verdict


def test_if_limits_are_off_the_rest_of_a_plan_is_done(stage: LocalCluster) -> None:
    stage.engine.enforce("off")
    said: list[str] = []
    with stage.query() as counting:
        counting.settle(lambda: {e.enforces for e in stage.engine.live_executors} == {"off"})
        one, epoch = Instance(counting.name, "count", 1), counting.epoch()
        for _ in range(2):
            outcome = stage.supervisor.apply(Plan(limits_pct={one: 10.0}, cuts=(counting.name,)))
            assert outcome.ok and not any("limit" in done for done in outcome.done)
            said += [r.reason for r in outcome.left_out]
        assert counting.epoch() == epoch + 2
    assert said == ["enforce is off"]
    stage.engine.enforce("auto")


def test_only_instances_are_in_groups_and_another_way_leaves_none(stage: LocalCluster) -> None:
    groups = stage.cluster.run.groups
    if groups is None:
        pytest.skip(stage.cluster.run.unfenced_because)
    stage.cluster.fence()
    stage.engine.enforce("cgroup")
    try:
        assert [n.fence_cpu for n in stage.cluster.status()] == list(stage.cluster.settings.node_cpus().values())
        # Far more than they can do: every instance wants all it can get. One epoch, so that threads stay the same.
        with stage.query(rate=5000, epoch_s=LONG_S) as counting:
            topology = stage.engine.observe().topology(counting.name)
            assert stage.supervisor.apply(Plan(limits_pct=dict.fromkeys(topology.instances(), 50.0))).ok
            counting.settle(lambda: bool(counting.executors()) and limited(groups) == threads_of(counting))
            held = threads_of(counting)
            beside = 0
            for node in stage.cluster.settings.node_names():
                (executor,) = executors_of(stage.cluster.run, node).values()
                threads = {int(p.name) for p in Path(f"/proc/{executor.pid}/task").iterdir()}
                beside += len(threads - held)
            assert beside > 60, "network, GC, compiler and heartbeat threads are in no instance's group"
            for _ in range(5):  # executors answer at once although the instances use all they may
                assert set(stage.engine.living()[0]) == {w.executor for w in stage.engine.workers()}
            stage.engine.enforce("auto")
            counting.settle(lambda: list(groups.path.glob("*/barograph-*")) == [])
            assert limited(groups) == set()
    finally:
        stage.engine.enforce("auto")
        stage.cluster.lift_fence()


def threads_of(counting: RunningQuery) -> set[int]:
    """Threads of the present epoch's instances."""
    epoch = counting.cluster.engine.present(counting.name)
    assert epoch is not None
    return {life.tid for life in epoch.lives.values()}


def limited(groups: RunGroups) -> set[int]:
    """Threads in instances' groups of any node."""
    name = "tasks" if groups.version == 1 else "cgroup.threads"
    return {int(tid) for file in groups.path.glob(f"*/barograph-*/*/{name}") for tid in file.read_text().split()}
