"""The keeper of a cluster's processes goes on after any error, and takes one that is stopped for long for dead."""

import errno
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from tests.polling import until

from barograph.engines.spark.cluster.embedded import EmbeddedCluster
from barograph.engines.spark.cluster.launch import MASTER
from barograph.engines.spark.cluster.node_keeper import NodeKeeper, StoppedLeaders
from barograph.engines.spark.cluster.node_status import ALIVE, DEAD, STOPPED, state_of
from barograph.engines.spark.cluster.processes import Process, alive, identify

ENDED = Process(2**22 + 1, 7)  # no process has such a number
NO_DESCRIPTOR = OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class Record:
    """The run's record. What the next looks at its processes raise, by their keepers."""

    groups = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errors: dict[str, list[Exception]] = {"master-keeper": [NO_DESCRIPTOR], "node-keeper": [ValueError("odd")]}

    @property
    def leaders(self) -> dict[str, Process]:
        if errors := self.errors[threading.current_thread().name]:
            raise errors.pop()
        return {MASTER: ENDED, "node-1": ENDED}


def test_after_any_error_what_has_ended_is_started_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    master, node = threading.Event(), threading.Event()
    cluster = SimpleNamespace(
        run=Record(tmp_path), settings=SimpleNamespace(node_names=lambda: ("node-1",)), start_master=master.set,
        start_node=lambda _: node.set(),
    )  # fmt: skip
    with caplog.at_level(logging.WARNING):
        keeper = NodeKeeper(cast(EmbeddedCluster, cluster))
        try:
            assert master.wait(10) and node.wait(10)
        finally:
            keeper.close()
    said = {r.getMessage() for r in caplog.records if "cannot be looked after" in r.getMessage()}
    assert said == {
        f"{MASTER} cannot be looked after: {type(NO_DESCRIPTOR).__name__}: {NO_DESCRIPTOR}; it is tried again",
        "node-1 cannot be looked after: ValueError: odd; it is tried again",
    }


@pytest.fixture
def leader() -> Iterator[Process]:
    """A process that takes the place of a master or a worker."""
    with subprocess.Popen(["sleep", "600"]) as started:
        found = identify(started.pid)
        assert found is not None
        yield found
        started.kill()


def stop(leader: Process) -> None:
    os.kill(leader.pid, signal.SIGSTOP)
    until(lambda: state_of(leader) == STOPPED)


@pytest.mark.parametrize("name", [MASTER, pytest.param("node-1", marks=pytest.mark.slow)])
def test_one_that_is_stopped_for_long_is_killed_and_started_again(
    name: str, leader: Process, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    started = threading.Event()
    others = {MASTER, "node-1"} - {name}
    me = identify(os.getpid())
    assert me is not None
    cluster = SimpleNamespace(
        run=SimpleNamespace(folder=tmp_path, groups=None, leaders={name: leader, **dict.fromkeys(others, me)}),
        settings=SimpleNamespace(node_names=lambda: ("node-1",)), start_master=started.set,
        start_node=lambda _: started.set(),
    )  # fmt: skip
    with caplog.at_level(logging.WARNING):
        keeper = NodeKeeper(cast(EmbeddedCluster, cluster), 0.5)
        try:
            assert state_of(leader) == ALIVE
            stop(leader)
            assert started.wait(30)
        finally:
            keeper.close()
    assert state_of(leader) == DEAD
    said = [r.getMessage() for r in caplog.records if "stopped" in r.getMessage()]
    assert said == [f"{name} has been stopped for more than 0.5 s: it is killed"]


class Now:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def test_a_short_stop_is_in_order(leader: Process) -> None:
    now = Now()
    looks = StoppedLeaders(12.0, now)

    def look(after_s: float) -> tuple[str, ...]:
        now.s += after_s
        return looks.look({"node-1": leader})

    stop(leader)
    assert [look(2.0) for _ in range(7)] == [()] * 7, "it has been stopped for 12 s since the first look"
    os.kill(leader.pid, signal.SIGCONT)
    until(lambda: state_of(leader) == ALIVE)
    assert look(2.0) == () and not looks.any
    stop(leader)
    assert [look(2.0) for _ in range(8)] == [*[()] * 7, ("node-1",)], "it counts from the beginning again"
    assert alive(leader)


def test_the_time_in_which_the_keeper_itself_was_stopped_does_not_count(leader: Process) -> None:
    now = Now()
    looks = StoppedLeaders(12.0, now)
    stop(leader)
    assert looks.look({"node-1": leader}) == ()
    now.s += 3600.0
    assert looks.look({"node-1": leader}) == ()


def test_without_a_limit_a_stop_may_last(leader: Process) -> None:
    now = Now()
    looks = StoppedLeaders(None, now)
    stop(leader)
    for _ in range(9):
        assert looks.look({"node-1": leader}) == () and not looks.any
        now.s += 3.0
