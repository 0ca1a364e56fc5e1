"""Nodes leave and come back through the port, within the bounds; on an engine without Spark."""

import logging

import pytest
from tests.engines.spark.fake_plugin import FakeOperator, FakePlugin, FakeTopology, engine_on

from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.executors.node_release import NodeRelease
from barograph.engines.spark.executors.port import ExecutorBounds
from barograph.engines.spark.executors.requested import RequestedExecutors
from barograph.model import Node, Outcome, Refusal, RefusalCode

HOSTS = {"0": "host-0", "1": "host-1", "2": "host-2", "3": "host-2"}


def release_on(
    plugin: FakePlugin,
    monkeypatch: pytest.MonkeyPatch,
    bounds: ExecutorBounds | None = None,
    begun_with: int | None = None,
) -> tuple[SparkEngine, NodeRelease]:
    engine = engine_on(plugin, monkeypatch)
    engine.refresh()
    engine.executors = RequestedExecutors(engine, lambda: len(engine.workers()), begun_with, bounds or ExecutorBounds())
    return engine, NodeRelease(engine, engine.executors)


def why(outcome: Outcome) -> tuple[RefusalCode, str]:
    """Of the one node that stays as it is."""
    (kept,) = outcome.left_out
    return kept.code, kept.reason


def counting(*executors: str) -> dict[str, FakeTopology]:
    return {"counting": FakeTopology((FakeOperator("split", executors),))}


def test_a_node_is_released_with_all_its_executors_and_wanted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = FakePlugin(counting("0", "1"), dict(HOSTS))
    engine, nodes = release_on(plugin, monkeypatch)
    assert nodes.change(["host-1", "host-2", "host-9"], ["host-1"]) == Outcome(
        ("released host-2",),
        left_out=(
            Refusal("fetch of host-1", RefusalCode.NOT_RELEASED, "it was not released", node="host-1"),
            Refusal("release of host-1", RefusalCode.NODE_IN_USE, "counting/split/1 has its seat there", node="host-1"),
            Refusal("release of host-9", RefusalCode.NO_SUCH_NODE, "there is no such node", node="host-9"),
        ),
    )
    assert (plugin.released, plugin.wanted) == (["2", "3"], [2])
    for executor in plugin.released:
        del plugin.hosts[executor]
    now = engine.observe()
    assert [n.name for n in now.nodes] == ["host-0", "host-1"]
    assert now.asleep == (Node("host-2", 1600.0, slots=2, seats=8),), "as large as it was"
    assert why(nodes.change(["host-2"], [])) == (RefusalCode.NODE_RELEASED, "it is released already")
    assert nodes.change([], ["host-2"]) == Outcome(("fetched host-2",))
    assert plugin.wanted[-1] is None, "nothing is released: every host may be used again"
    assert engine.observe().asleep == ()


def test_each_release_is_logged_with_what_came_of_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, nodes = release_on(FakePlugin(counting("0", "1"), dict(HOSTS)), monkeypatch)
    with caplog.at_level(logging.INFO, "barograph"):
        nodes.change(["host-1", "host-2"], [])
    assert caplog.messages == ["released host-2", "no release of host-1: counting/split/1 has its seat there"]


def test_the_bounds_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = FakePlugin({}, dict(HOSTS))
    engine, nodes = release_on(plugin, monkeypatch, ExecutorBounds(3, 5), begun_with=4)
    least = (RefusalCode.LEAST_EXECUTORS, "executors.least is 3, and 2 would be left")
    assert why(nodes.change(["host-2"], [])) == least
    assert nodes.change(["host-1"], []) == Outcome(("released host-1",))
    del plugin.hosts["1"]
    assert [n.name for n in engine.observe().asleep] == ["host-1", "more-4"]
    plugin.hosts |= {"4": "host-3", "5": "host-3"}
    engine.refresh()
    most = (RefusalCode.MOST_EXECUTORS, "executors.most is 5, and there are 5")
    assert why(nodes.change([], ["host-1"])) == most


def test_executors_that_never_were_there_are_offered_and_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = FakePlugin({}, {"1": "a", "2": "b"}, seats=4)
    engine, nodes = release_on(plugin, monkeypatch, ExecutorBounds(1, 4), begun_with=2)
    assert engine.observe().asleep == (Node("more-3", 400.0, 1, 4), Node("more-4", 400.0, 1, 4))
    assert nodes.change([], ["more-3"]) == Outcome(("fetched more-3",))
    assert (plugin.wanted, [n.name for n in engine.observe().asleep]) == ([3], ["more-4"])
    plugin.hosts["3"] = "c"
    assert [n.name for n in engine.observe().nodes] == ["a", "b", "c"]
    assert why(nodes.change([], ["more-4", "more-5"])) == (RefusalCode.NOT_RELEASED, "it was not released")
    assert plugin.wanted == [3, 4]


def test_nothing_is_released_where_spark_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_on(FakePlugin(), monkeypatch)
    kept = NodeRelease(engine, None).change(["host-1"], ["host-2"])
    assert [r.what for r in kept.left_out] == ["release of host-1", "fetch of host-2"]
    assert {(r.code, r.reason) for r in kept.left_out} == {(RefusalCode.NODES_KEPT, "Spark runs in one process")}
