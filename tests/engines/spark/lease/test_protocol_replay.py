"""Traces of the model by the plug-in's own code on real checkpoints: each step does and leaves what the model says.

Two drivers in one JVM, each with a class loader and so with leases of its own, take the lease by
``FencedCheckpointFiles``, write Spark's own ``OffsetSeqLog`` and ``CommitLog`` through it, and take repartitions back
by ``Repartition.undo``. The thread of each waits at every file operation that is a step of the model, and goes on when
the trace says so (``jvm/testing/SteppedFiles.scala``).

Not covered: the several moves by which a lease fences the others off, and the looks and the move of a dropped epoch,
are one step, as in the model, and no other driver comes between them; an owner is at once taken for dead, because both
are in one process (patience: ``LeaseSuite``; a stopped process: ``test_two_drivers.py``); the state itself is only a
name in the commit (``test_crash_points.py`` has it); asynchronous logs; HDFS.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engines.spark.lease.protocol import Disk, Driver, Protocol, State, Step, after_step, every_step, search

from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.spark
TAKING = ("look", "number", "fence", "check", "fence off")
LOST = "failed: org.apache.spark.barograph.lease.LeaseLost"


@dataclass(frozen=True)
class World:
    """A session whose checkpoint files wait at each step, and a class loader for each driver."""

    session: SparkSession
    loaders: tuple[Any, ...]

    @property
    def testing(self) -> Any:
        jvm: Any = self.session._jvm
        return jvm.org.apache.spark.barograph.testing


class RealDrivers:
    """Drivers on a real checkpoint. Each step of the model lets the real code do one."""

    def __init__(self, world: World, root: Path) -> None:
        self._root = root
        session = world.session._jsparkSession
        self._drivers = [world.testing.SteppedDrivers.open(loader, session, f"file:{root}") for loader in world.loaders]
        self._at = [""] * len(self._drivers)  # before which step each waits
        self._repartitions = [False] * len(self._drivers)

    def take(self, step: Step, before: Driver, after: Driver) -> None:
        real, is_over = self._drivers[step.driver], after.at == "ended"
        match step.name.split():
            case ["begin"]:
                self._repartitions[step.driver] = step.detail <= 0
                return
            case ["die"]:  # its thread waits for ever
                return
            case [*_] if step.name in TAKING:
                if not self._at[step.driver]:
                    self._at[step.driver] = real.ask("takeLease", [])
                expected = {"ended": "look", "drop": "done"}.get(after.at, after.at)  # refused, it looks again
                self._go(step, expected)
            case ["open", log]:
                if log == "offsets":
                    repartition = self._repartitions[step.driver]
                    self._at[step.driver] = real.ask("writeOffsets", [before.epoch, before.end, repartition])
                else:
                    self._at[step.driver] = real.ask("writeCommit", [before.epoch, f"{before.rows} rows"])
                # Spark looks before it opens, and may find what the next owner has written by then.
                if not (is_over and "the entry is there" in self._at[step.driver]):
                    self._go(step, LOST if is_over else "exists")
            case ["exists", _]:
                self._go(step, "failed: org.apache.spark.SparkConcurrentModification" if is_over else "move")
            case ["move", _]:
                self._go(step, LOST if is_over else "done")
            case ["drop" | "undo" as name]:
                if self._at[step.driver] != "move":
                    self._at[step.driver] = real.ask("dropUncommitted" if name == "drop" else "undoRepartition", [])
                if is_over and self._at[step.driver] == "done":
                    return  # the next owner has dropped it or committed it
                if step.detail < 0:
                    assert self._at[step.driver] == "done", (step, self._at)
                elif is_over:
                    self._go(step, LOST)
                else:
                    self._go(step, "done", "move")  # there may be one more epoch

    def disk(self) -> Disk:
        """What is really in the folder; of leases only what the logs depend on."""
        epochs = sorted(int(f.name) for f in (self._root / "offsets").glob("*") if f.name.isdecimal())
        offsets = tuple((e, committed_offsets(self._root, e)[0]) for e in epochs)
        lines = self._drivers[0].ask("committed", []).splitlines()
        commits = tuple((int(line.split()[0]), int(line.split()[1])) for line in lines)
        return Disk(offsets, commits)

    def abandon(self) -> None:
        for driver in self._drivers:
            driver.ask("abandon", [])

    def _go(self, step: Step, *expected: str) -> None:
        found = self._at[step.driver] = self._drivers[step.driver].ask("go", [])
        assert found.startswith(expected), f"{step.name} of driver {step.driver}: {found!r}, not {expected}"
        if found == "done" or found.startswith("failed"):
            self._at[step.driver] = found if step.name in ("drop", "undo") else ""


def replay(world: World, root: Path, protocol: Protocol, trace: tuple[Step, ...]) -> None:
    """After each step the real files are what the model says."""
    real, state = RealDrivers(world, root), protocol.begin()
    try:
        for step in trace:
            before = state
            state = after_step(protocol, state, step)
            real.take(step, before.drivers[step.driver], state.drivers[step.driver])
            if writes(before, state):
                found = real.disk()
                assert (found.offsets, found.commits) == (state.disk.offsets, state.disk.commits), (step, trace)
        found = real.disk()
        assert (found.offsets, found.commits) == (state.disk.offsets, state.disk.commits), trace
    finally:
        real.abandon()


def writes(before: State, after: State) -> bool:
    return (before.disk.offsets, before.disk.commits) != (after.disk.offsets, after.disk.commits)


@pytest.fixture
def world(shared_stage: LocalCluster) -> Iterator[World]:
    session = shared_stage.spark.newSession()
    session.conf.set(
        "spark.sql.streaming.checkpointFileManagerClass", "org.apache.spark.barograph.testing.SteppedFiles"
    )
    found = World(session, ())
    yield World(session, (found.testing.SteppedDrivers.loader(), found.testing.SteppedDrivers.loader()))


def test_the_real_code_does_what_the_model_says_step_by_step(world: World, tmp_path: Path) -> None:
    """Every step of the model with every result, and the other driver wherever it may be meanwhile."""
    protocol = Protocol()
    traces = every_step(protocol)
    taken = {step.name for trace in traces for step in trace}
    assert len(traces) > 100 and taken > {"undo", "drop", "die", "move offsets", "move commits", *TAKING}
    for number, trace in enumerate(traces):
        replay(world, tmp_path / str(number), protocol, trace)


def test_the_fault_that_the_model_finds_without_a_fence_cannot_be_replayed_on_the_real_files(
    world: World, tmp_path: Path
) -> None:
    """Its last move is refused."""
    protocol = Protocol(fenced=False)
    trace = search(protocol).trace
    with pytest.raises(AssertionError, match=r"move commits of driver 0: 'failed: .*LeaseLost"):
        replay(world, tmp_path / "fault", protocol, trace)
    assert [f.name for f in (tmp_path / "fault" / "commits").iterdir() if f.name.isdecimal()] == []
