"""Topologies leave executors that were decommissioned, with an engine that only notes what is asked of it."""

import logging
from collections.abc import Collection

import pytest

from barograph.engines.spark.executors.decommissions import Decommissions


class FakeExecutors:
    """seated: topology -> its epoch, if it has instances on a leaving executor. needs: seats of each topology."""

    def __init__(self) -> None:
        self.gone: tuple[str, ...] = ()
        self.seated: dict[str, int] = {}
        self.free, self.needs = 8, 4
        self.cut: list[str] = []

    def lives(self) -> bool:
        return True

    def leaving(self) -> tuple[str, ...]:
        return self.gone

    def seated_on(self, executors: Collection[str]) -> dict[str, int]:
        assert tuple(executors) == self.gone
        return dict(self.seated)

    def free_seats(self, topology: str) -> int:  # noqa: ARG002
        return self.free

    def fit(self, topology: str, seats: int | None) -> int:  # noqa: ARG002
        return self.needs

    def make_way(self, topology: str) -> int:
        self.cut.append(topology)
        return 2

    def where(self, executor: str) -> str:
        return f"executor {executor} on host-1"


def test_a_topology_is_cut_once_until_it_sits_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "barograph")
    engine = FakeExecutors()
    watch = Decommissions(engine)
    watch.keep_up()
    assert engine.cut == []
    engine.gone, engine.seated = ("1",), {"counting": 7}
    for _ in range(3):  # the epoch takes a while to end
        watch.keep_up()
    assert engine.cut == ["counting"]
    assert caplog.messages == [
        "executor 1 on host-1 is decommissioned: its instances move away",
        "counting is cut, and 2 of its instances move",
    ]
    engine.seated = {"counting": 8}  # begun before the notice was heard, so it still sits there
    watch.keep_up()
    assert engine.cut == ["counting", "counting"]
    engine.seated = {}
    watch.keep_up()
    engine.gone = ()
    watch.keep_up()
    assert len(engine.cut) == 2


def test_every_topology_with_instances_there_is_cut() -> None:
    engine = FakeExecutors()
    engine.gone, engine.seated = ("1", "2"), {"a": 1, "b": 5}
    Decommissions(engine).keep_up()
    assert engine.cut == ["a", "b"]


def test_without_room_it_stays_and_goes_as_soon_as_there_is_some(caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeExecutors()
    engine.gone, engine.seated, engine.free = ("1",), {"counting": 7}, 3
    watch = Decommissions(engine)
    watch.keep_up()
    watch.keep_up()
    assert engine.cut == []
    text = "counting stays on executor 1 on host-1, which will end: it needs 4 seats and the others have 3"
    assert [m for m in caplog.messages if "stays" in m] == [text], "once"
    engine.free = 4
    watch.keep_up()
    assert engine.cut == ["counting"]
