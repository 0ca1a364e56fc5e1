"""Any number of observers may look at the engine at any time: each has its own cycle, and status has rates."""

import time

import pytest
from tests.engines.spark.fake_plugin import FakeOperator, FakePlugin, FakeTopology, engine_on

from barograph.engines.spark.engine import SparkEngine
from barograph.model import Snapshot


class Time:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def plugin() -> FakePlugin:
    return FakePlugin({"t": FakeTopology((FakeOperator("source", ("0", "1"), source=True),))})


@pytest.fixture
def engine(plugin: FakePlugin, clock: Time, monkeypatch: pytest.MonkeyPatch) -> SparkEngine:
    return engine_on(plugin, monkeypatch, now=clock)


def executed(seen: Snapshot) -> tuple[float, float]:
    """Rows and seconds of the cycle."""
    return seen.metrics.of_operator("t", "source").executed, seen.cycle_s


def pass_time(plugin: FakePlugin, clock: Time, seconds: float) -> None:
    """Ten rows a second at each instance."""
    clock.now_s += seconds
    rows = round(10 * (clock.now_s - 100.0))
    plugin.meters["executed"] = [rows, rows]


def test_each_has_its_own_cycle(plugin: FakePlugin, clock: Time, engine: SparkEngine) -> None:
    pass_time(plugin, clock, 10.0)
    assert executed(engine.observe()) == (200.0, 10.0)
    pass_time(plugin, clock, 2.0)
    assert executed(engine.observe("second")) == (40.0, 2.0), "new: since the controller looked"
    pass_time(plugin, clock, 3.0)
    assert executed(engine.observe()) == (100.0, 5.0)
    assert executed(engine.observe("second")) == (60.0, 3.0)
    assert executed(engine.glance()) == (100.0, 5.0), "the metrics of its last cycle"


def test_people_see_the_rates_of_the_last_seconds_and_take_nothing(
    plugin: FakePlugin, clock: Time, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda s: pass_time(plugin, clock, s))
    pass_time(plugin, clock, 10.0)
    engine.observe()
    pass_time(plugin, clock, 4.0)
    assert executed(engine.recently()) == (80.0, 4.0)
    pass_time(plugin, clock, 1.0)
    assert executed(engine.recently()) == (100.0, 5.0), "not over less than two seconds"
    pass_time(plugin, clock, 1.0)
    assert executed(engine.observe()) == (120.0, 6.0), "the controller's cycle is whole"
    pass_time(plugin, clock, 500.0)
    assert executed(engine.recently()) == (20.0, 1.0), "none has looked for long: it measures for a second"
    assert executed(engine.observe()) == (20.0 * 501, 501.0)


def test_a_figure_has_the_age_of_its_executors_last_report(plugin: FakePlugin, engine: SparkEngine) -> None:
    plugin.meters["age_ms"] = [4500, 100]
    assert engine.observe().metrics.age_s.tolist() == [4.5, 0.1]
