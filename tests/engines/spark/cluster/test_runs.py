"""A run is recorded whole, found by its master, and cleared only when its owner and its watchdog are dead."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from barograph.engines.spark.cluster import runs
from barograph.engines.spark.cluster.node_limit import RunGroups
from barograph.engines.spark.cluster.processes import RUN_MARK, Process, identify
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.folders import STATE_VARIABLE
from barograph.model import BadInput

DEAD = Process(os.getpid(), 1)  # our pid with another start time


def test_record_reads_back() -> None:
    run = runs.claim(ClusterSettings(2, 0.5), "a", detached=True)
    full = replace(
        run, watchdog=DEAD, leaders={"master": DEAD}, groups=RunGroups(1, Path("/x/barograph/a")), master="m"
    )
    runs.record(full)
    assert runs.read(run.folder) == full


def test_a_name_in_use_is_refused() -> None:
    runs.claim(ClusterSettings(), "a")
    with pytest.raises(BadInput, match="named a is up already"):
        runs.claim(ClusterSettings(), "a")


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "x" * 61])
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="name"):
        runs.claim(ClusterSettings(), name)
    assert runs.all_runs() == ()


def test_run_of_a_master() -> None:
    run = runs.claim(ClusterSettings(2), None)
    runs.record(replace(run, master="spark://127.0.0.1:7"))
    found = runs.run_of("spark://127.0.0.1:7")
    assert found is not None and found.settings.addresses() == {"node-1": "127.0.0.2", "node-2": "127.0.0.3"}
    assert runs.run_of("spark://127.0.0.1:8") is None


def test_sweep_clears_only_runs_without_owner_and_watchdog() -> None:
    me = identify(os.getpid())
    cases = {"owned": (me, DEAD), "guarded": (DEAD, me), "left": (DEAD, DEAD), "early": (DEAD, None)}
    for name, (owner, watchdog) in cases.items():
        assert owner is not None
        runs.record(replace(runs.claim(ClusterSettings(), name), owner=owner, watchdog=watchdog))
    assert runs.sweep(patience_s=0) == ("early", "left")
    assert [run.name for run in runs.all_runs()] == ["guarded", "owned"]
    assert [run.name for run in runs.live_runs()] == ["owned"]


def test_clear_ends_processes_of_the_run_and_no_others() -> None:
    run = runs.claim(ClusterSettings(), None)
    ours = subprocess.Popen(["sleep", "100"], env={**os.environ, RUN_MARK: run.run_id})
    other = subprocess.Popen(["sleep", "100"], env={**os.environ, RUN_MARK: "another"})
    recycled = replace(run, leaders={"node-1": Process(other.pid, 1)})
    runs.clear(recycled)
    assert ours.wait() == -9
    assert other.poll() is None
    assert not run.folder.exists()
    other.kill()
    other.wait()


def test_after_a_restart_of_the_machine_no_process_is_touched() -> None:
    run = runs.claim(ClusterSettings(), None)
    other = subprocess.Popen(["sleep", "100"], env={**os.environ, RUN_MARK: run.run_id})
    runs.record(replace(run, boot="another"))
    assert runs.sweep() == (run.name,)
    assert other.poll() is None
    other.kill()
    other.wait()


def test_folder_that_others_can_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv(STATE_VARIABLE, str(shared))
    with pytest.raises(BadInput, match="no other user can write"):
        runs.all_runs()
