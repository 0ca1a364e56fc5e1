"""Priorities of a driver: which topologies are known, what sets a trigger, and that no error ends the thread."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import IllegalArgumentException
from tests.priority.test_manager import Water

from barograph.engines.spark.orders.source_gates import SourceGates
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.model import BadInput, Instance, Metrics, Node, Operator, Snapshot, Topology
from barograph.priority import RateTrigger
from barograph.priority.declared_triggers import DeclaredTriggers
from barograph.priority.service import FORGET_S, PriorityService


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Engine:
    """Topologies by name; what is observed is given."""

    def __init__(self) -> None:
        self.running: tuple[str, ...] = ("a", "b")
        self.gates = SourceGates(lambda _: None)
        self.levels: dict[str, int] = {}
        self.next = seen(0.0, 0.0)
        self.observers: set[str] = set()
        self.options = {"b": QueryOptions(level=3)}

    def options_of(self, name: str) -> QueryOptions:
        return self.options.get(name, QueryOptions())

    def set_levels(self, levels: Mapping[str, int]) -> int:
        self.levels = dict(levels)
        return 1

    def refresh(self) -> None: ...

    def observe(self, observer: str) -> Snapshot:
        self.observers.add(observer)
        return self.next


class Broken(Water):
    """PriorityHooks that fail for a while."""

    failures = 3
    error: Exception = OSError("the network is down")

    def drained(self, topology: str) -> bool:
        if self.failures > 0:
            self.failures -= 1
            raise self.error
        return super().drained(topology)


def priorities(folder: Path, engine: Engine, clock: Clock, water: Water) -> PriorityService:
    driver = SimpleNamespace(engine=engine, queries=(), app="my app: 1", folder=lambda: folder)
    return PriorityService(driver, clock=clock, hooks=water)  # type: ignore[arg-type]  # all it needs of a supervisor


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.01)


def test_running_topologies_are_known_and_those_gone_for_long_are_forgotten(tmp_path: Path) -> None:
    engine, clock = Engine(), Clock()
    with priorities(tmp_path, engine, clock, Water()) as found:
        assert [r["topology"] for r in found.verb({"do": "list"})] == ["a", "b"]
        assert engine.levels == {"a": 2, "b": 3}, "b's author asked for it"
        engine.running = ("b",)
        found.turn()
        assert found.manager.levels() == {"a": 2, "b": 3}, "it may be between two runs"
        clock.now_s += FORGET_S + 1
        found.turn()
        assert found.manager.levels() == {"b": 3}
    assert (tmp_path / "priorities-my-app-1.json").exists()


def test_the_next_driver_goes_on_with_what_was_stored(tmp_path: Path) -> None:
    engine, clock, water = Engine(), Clock(), Water()
    with priorities(tmp_path, engine, clock, water) as found:
        found.trigger("a", True)
        wait_until(lambda: found.manager.levels()["a"] == 1 and water.did[-1:] == ["resume a"])
    again = Engine()
    again.running = ()
    with priorities(tmp_path, again, clock, water) as found:
        found.turn()
        assert found.manager.levels() == {"a": 1, "b": 3}, "its queries have not started yet"


def test_two_drivers_of_one_name_keep_their_own_priorities(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with priorities(tmp_path, Engine(), Clock(), Water()) as first:
        with priorities(tmp_path, Engine(), Clock(), Water()) as second:
            first.verb({"do": "set", "topology": "a", "level": 5})
            second.verb({"do": "set", "topology": "a", "level": 7})
            wait_until(lambda: first.manager.levels()["a"] == 5 and second.manager.levels()["a"] == 7)
        assert ["another driver is called 'my app: 1' too" in m for m in caplog.messages] == [True]
    with priorities(tmp_path, Engine(), Clock(), Water()) as again:
        assert again.manager.levels()["a"] == 5
    assert sorted(p.name for p in tmp_path.glob("*.json")) == ["priorities-my-app-1-2.json", "priorities-my-app-1.json"]


@pytest.mark.parametrize(
    "error",
    [
        OSError("the network is down"),
        ValueError("the network is down"),
        IllegalArgumentException("the network is down"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_errors_are_reported_and_the_step_is_tried_again(
    error: Exception, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    water = Broken()
    water.error = error
    with priorities(tmp_path, Engine(), Clock(), water) as found:
        found.trigger("a", True)
        wait_until(lambda: "resume a" in water.did)
        assert "the network is down" in found.problems
        assert any(type(error).__name__ in r.getMessage() for r in caplog.records if r.levelname == "WARNING")
        with pytest.raises(BadInput, match="there is no topology 'x'"):
            found.trigger("x", True)


def seen(at_s: float, rows: float) -> Snapshot:
    topologies = (Topology("a", (Operator("s", 1, source=True),)), Topology("b", (Operator("s", 1, source=True),)))
    instances = tuple(Instance(name, "s", 0) for name in "ab")
    metrics = Metrics(instances, {"arrived": [rows, 0.0]})  # type: ignore[dict-item]  # read as a column
    return Snapshot(at_s, 1.0, (Node("n", 100.0),), topologies, metrics=metrics)


def test_a_rate_sets_the_trigger(tmp_path: Path) -> None:
    engine, clock = Engine(), Clock()
    with priorities(tmp_path, engine, clock, Water()) as found:
        found.turn()
        found.watch("a", DeclaredTriggers(RateTrigger(rows_s=100.0, seconds=3.0)))
        for second in range(1, 7):
            clock.now_s, engine.next = float(second), seen(float(second), 150.0)
            found.turn()
        wait_until(lambda: found.manager.levels()["a"] == 1)
        assert any("trigger on by its rate of 150 rows/s" in told for told in found.manager.told)
        assert found.manager.levels()["b"] == 3
        assert engine.observers == {"rate triggers"}, "it has a baseline of its own"
