"""Traces of the model on a real folder, by the plug-in's own leases: the real files end as the model says."""

import json
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from tests.engines.spark.lease.protocol import Disk, Protocol, State, Step, search, walked

from barograph.engines.spark.query.checkpoint import committed_offsets, last_committed_epoch
from barograph.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.spark
TAKING = ("look", "number", "fence", "check")  # the real lease takes these steps and "fence off" in one call
ENDS = 40


class RealDrivers:
    """Drivers on a real checkpoint folder. Each step of the model is a call of the real code."""

    def __init__(self, jvm: Any, root: Path) -> None:
        self._lease = jvm.org.apache.spark.barograph.lease
        self._path, self._root = jvm.org.apache.hadoop.fs.Path, root
        self._files = getattr(self._lease, "LocalLeaseFiles$").__getattr__("MODULE$")  # a Scala object
        self._leases: dict[int, Any] = {}
        self._open: dict[int, Any] = {}
        for log in ("offsets", "commits"):
            (root / log).mkdir()

    def take(self, step: Step, before: State) -> None:
        driver = before.drivers[step.driver]
        match step.name.split():
            case ["fence", "off"]:
                # An owner of this very process is taken over at once.
                owner = self._lease.Owner.here(f"app-{step.driver}", f"driver {step.driver}")
                self._leases[step.driver] = self._lease.Lease.acquire(self._at(), owner, self._files, 1000)
            case ["open", log]:
                self._try(step, lambda: self._write(step.driver, log, driver.end, driver.rows))
            case ["exists", log]:
                assert self._files.exists(self._at(log, driver.epoch)) == bool(step.detail)
            case ["move", log]:
                moved = self._try(step, lambda: self._files.move(self._open[step.driver], self._at(log, driver.epoch)))
                assert moved == bool(step.detail), step
            case ["drop" | "undo"] if step.detail >= 0:
                away = self._leases[step.driver].temporary()
                self._try(step, lambda: self._files.move(self._at("offsets", step.detail), away))

    def disk(self) -> Disk:
        """What is really in the folder; of leases only what the logs depend on."""
        epochs = sorted(int(f.name) for f in (self._root / "offsets").iterdir())
        offsets = tuple((e, committed_offsets(self._root, e)[0]) for e in epochs)
        last = last_committed_epoch(self._root)
        commits = tuple(
            (e, int(json.loads((self._root / "commits" / str(e)).read_text().splitlines()[1])["rows"]))
            for e in range(0 if last is None else last + 1)
        )
        return Disk(offsets, commits)

    def _write(self, driver: int, log: str, end: int, rows: int) -> None:
        temporary = self._leases[driver].temporary()
        text = f"v1\n{{}}\n[{end}]\n" if log == "offsets" else f"v1\n{json.dumps({'rows': rows})}\n"
        stream = self._files.open(temporary)
        stream.write(text.encode())
        stream.close()
        self._open[driver] = temporary

    def _at(self, log: str = "", epoch: int | None = None) -> Any:
        return self._path(f"file:{self._root}" + (f"/{log}/{epoch}" if log else ""))

    def _try(self, step: Step, work: Any) -> bool:
        """Whether it could be done: a fence that is gone is a missing file."""
        try:
            work()
        except Py4JJavaError as error:
            assert error.java_exception.getClass().getSimpleName() == "NoSuchFileException", (step, error)
            return False
        return True


def whole_takings(trace: tuple[Step, ...]) -> bool:
    """Whether no other driver's step comes between those in which a driver takes its lease."""
    inside: int | None = None
    for step in trace:
        if inside is not None and step.driver != inside:
            return False
        inside = step.driver if step.name in TAKING else None
    return True


def replayed(jvm: Any, root: Path, protocol: Protocol, trace: tuple[Step, ...]) -> Disk:
    root.mkdir()
    real, state = RealDrivers(jvm, root), protocol.begin()
    for step in trace:
        real.take(step, state)
        state = next(after for one, after in protocol.steps(state) if one == step)
    return real.disk()


def test_the_real_files_end_as_the_model_says(shared_stage: LocalCluster, tmp_path: Path) -> None:
    protocol = Protocol()
    found = search(protocol)
    traces = []
    # The richest ends first: those in which both drivers wrote.
    for end in sorted(found.ends, key=lambda s: (-len(s.disk.commits), -len(s.disk.numbers), repr(s))):
        trace = found.way(end)
        if whole_takings(trace) and len({s.driver for s in trace if s.name.startswith("move")}) == 2:
            traces.append(trace)
        if len(traces) == ENDS:
            break
    assert len(traces) > 10
    for number, trace in enumerate(traces):
        disk = replayed(shared_stage.spark._jvm, tmp_path / str(number), protocol, trace)
        expected = walked(protocol, trace).disk
        assert (disk.offsets, disk.commits) == (expected.offsets, expected.commits), trace


def test_the_fault_that_the_model_finds_without_a_fence_cannot_be_replayed_on_the_real_files(
    shared_stage: LocalCluster, tmp_path: Path
) -> None:
    """Its last move is refused."""
    protocol = Protocol(fenced=False)
    trace = search(protocol).trace
    with pytest.raises(AssertionError, match="move commits"):
        replayed(shared_stage.spark._jvm, tmp_path / "fault", protocol, trace)
    assert list((tmp_path / "fault" / "commits").iterdir()) == []
