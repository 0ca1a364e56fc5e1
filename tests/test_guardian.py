"""What a process has started ends with it, also if it is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from barograph import guardian
from barograph.engines.spark.cluster.processes import marked, python_environment
from barograph.guardian import guarded, sweep
from barograph.model import BadInput

OWNER = """
import subprocess, sys, time
from barograph.guardian import guarded
with guarded("test") as home:
    subprocess.Popen(["sleep", "600"], env=home.mark, start_new_session=True)
    print(home.folder, flush=True)
    time.sleep(600)
"""


def settle(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def started() -> tuple[subprocess.Popen[str], Path]:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], env=python_environment(), stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().strip())
    settle(lambda: len(marked(folder.name)) == 1)
    return owner, folder


def guardian_of(folder: Path) -> int | None:
    wanted = f"barograph.guardian\0{folder}\0".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if wanted in (entry / "cmdline").read_bytes():
                    return int(entry.name)
            except OSError:
                continue
    return None


def test_all_ends_with_the_block() -> None:
    with guarded("test") as home:
        child = subprocess.Popen(["sleep", "600"], env=home.mark)
        (home.folder / "file").write_text("x")
        settle(lambda: len(marked(home.folder.name)) == 1)
        assert guardian_of(home.folder) is not None
    assert child.wait(10) == -signal.SIGKILL
    assert not home.folder.exists()
    assert guardian_of(home.folder) is None


def test_all_ends_with_an_owner_that_is_killed() -> None:
    owner, folder = started()
    owner.kill()
    owner.wait()
    settle(lambda: not marked(folder.name) and not folder.exists() and guardian_of(folder) is None)


def test_the_next_use_clears_what_owner_and_guardian_left() -> None:
    owner, folder = started()
    assert sweep(folder.parent) == (), "its owner lives"
    found = guardian_of(folder)
    assert found is not None
    os.kill(found, signal.SIGKILL)
    owner.kill()
    owner.wait()
    assert marked(folder.name), "neither is there to clear it"
    with guarded("test"):
        assert not folder.exists()
        assert not marked(folder.name)


def test_a_folder_that_names_no_owner_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "something"
    other.mkdir()
    assert sweep(tmp_path) == ()
    assert other.exists()
    with pytest.raises(BadInput, match="names no process"):
        guardian.main(other)
