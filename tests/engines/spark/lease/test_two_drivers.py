"""Two drivers on one checkpoint: one has the lease, and the other cannot write, not even if it was only stopped."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from barograph.engines.spark.query.checkpoint import last_committed_epoch
from barograph.testing.driver_process import DriverProcess

pytestmark = pytest.mark.spark


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def driver(ending: ExitStack, folder: Path, name: str, patience_s: float = 10.0, hooked: bool = False) -> DriverProcess:
    process = DriverProcess(folder / "checkpoint", name, folder, patience_s, hooked)
    ending.callback(process.kill)
    return process


def test_a_stopped_owner_is_taken_over_and_cannot_commit_when_it_wakes(ending: ExitStack, tmp_path: Path) -> None:
    first = driver(ending, tmp_path, "first", hooked=True)
    second = driver(ending, tmp_path, "second", patience_s=3.0)
    first.ready()
    second.ready()
    first.ask("start")
    second.send("start")
    with pytest.raises(RuntimeError) as refused:
        second.answer()
    said = str(refused.value)
    assert "BadInput: the checkpoint" in said
    assert "is in use by the application first (local-" in said
    assert f"process {first.jvm}, since " in said

    first.ask("flow", 50)
    first.ask("cut")
    first.ask("flow", 50)
    epoch = last_committed_epoch(tmp_path / "checkpoint")
    assert epoch is not None
    first.ask("stop_before_move", f"commits/{epoch + 1}")
    first.send("cut")
    first.await_jvm("T")
    assert (tmp_path / "checkpoint" / "offsets" / str(epoch + 1)).exists()  # it has begun to commit

    began = time.monotonic()
    second.ask("start")
    assert time.monotonic() - began < 30.0
    second.ask("flow", 100)
    second.ask("cut")
    assert last_committed_epoch(tmp_path / "checkpoint") == epoch + 1  # the very epoch that the first was committing
    committed = (tmp_path / "checkpoint" / "commits" / str(epoch + 1)).read_text()

    first.wake()
    first.answer()  # the cut did not end in time
    end = first.ask("wait_for_end")
    assert "BadInput: the query wordcount was ended: the checkpoint" in end
    assert "was taken over by the application second (local-" in end and f"process {second.jvm}" in end
    assert first.ask("restarts") == 0
    assert (tmp_path / "checkpoint" / "commits" / str(epoch + 1)).read_text() == committed
    second.ask("flow", 50)
    second.ask("cut")
    second.ask("stop")
    verdict = second.ask("verdict")
    assert verdict["exact"], verdict["said"]


@pytest.mark.slow
def test_a_killed_owner_is_succeeded_at_once_and_a_stopped_query_leaves_no_lease(
    ending: ExitStack, tmp_path: Path
) -> None:
    first = driver(ending, tmp_path, "first").ready()
    second = driver(ending, tmp_path, "second", patience_s=60.0)
    second.ready()
    first.ask("start")
    first.ask("flow", 20)
    first.kill()
    began = time.monotonic()
    second.ask("start")
    assert time.monotonic() - began < 30.0  # not the patience
    second.ask("flow", 20)
    second.ask("cut")
    second.ask("stop")
    assert second.ask("verdict")["exact"]
    left = sorted(p.name for p in (tmp_path / "checkpoint" / "lease").iterdir())
    assert left == ["2.owner", "2.released"]
