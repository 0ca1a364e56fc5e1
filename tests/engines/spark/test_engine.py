"""The engine on a plug-in without Spark: nodes that are let go, and plans that are dropped in part or fail."""

import pytest
from tests.engines.spark.fake_plugin import FakeOperator, FakePlugin, FakeTopology, engine_on


class FakeQuery:
    """Refuses to be restarted if ``problem`` says why."""

    doing = "running"

    def __init__(self, problem: str = "") -> None:
        self.problem = problem

    def repartition(self, count: int | None, between: object = None) -> str:  # noqa: ARG002
        return self.problem


def counting(*executors: str) -> FakeTopology:
    return FakeTopology((FakeOperator("split", executors), FakeOperator("count", executors, stateful=True)))


def test_a_hold_is_released_when_its_wait_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = FakePlugin({"counting": counting("0", "1")})
    engine = engine_on(plugin, monkeypatch)
    assert engine.hold("counting")
    assert plugin.holds == {"counting"}
    plugin.fail_await_held = True
    with pytest.raises(ConnectionResetError):
        engine.hold("counting")
    assert plugin.holds == set()


def test_no_node_is_let_go_while_a_supervised_query_is_being_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no seat at that moment, so every node looks idle."""
    plugin = FakePlugin({"counting": counting("0", "1")})
    engine = engine_on(plugin, monkeypatch)
    engine.set_restartable("counting", FakeQuery())
    assert engine.let_go("host-1") == "counting/split/1 has its seat there"
    del plugin.topologies["counting"]
    assert engine.let_go("host-1") == "counting is being started again"
    assert plugin.released == []
    engine.set_restartable("counting", None)
    assert engine.let_go("host-1") == ""
    assert plugin.released == ["1"]
