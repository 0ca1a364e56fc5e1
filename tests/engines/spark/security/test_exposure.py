"""What the doctor says is open, and to whom."""

import json
from pathlib import Path

import pytest

from barograph.cli.main import main
from barograph.engines.spark.driver.endpoint import Endpoint
from barograph.engines.spark.folders import CACHE_VARIABLE, STATE_VARIABLE
from barograph.engines.spark.security import exposure
from barograph.engines.spark.security.driver_uses import USES, DriverUses, PythonPort, asked_drivers
from barograph.engines.spark.security.ports import ListeningPort
from barograph.engines.spark.security.processes import OwnProcess
from barograph.model.codec import to_json

OWN = ListeningPort(7, "127.0.0.2", 4000)


def test_the_exit_code_says_that_something_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr("barograph.engines.spark.health.examine", lambda: ())
    monkeypatch.setattr(exposure, "own_processes", lambda: iter(()))
    assert main(["doctor", "--json"]) == 0
    assert [f["name"] for f in json.loads(capsys.readouterr().out)] == ["files of state", "files of cache"]
    monkeypatch.setattr(exposure, "own_processes", lambda: iter([OwnProcess(7, "master", (), (OWN,))]))
    assert main(["doctor"]) == 1
    assert "OPEN  ports of master 7" in capsys.readouterr().out


def test_checkpoints_and_histories_of_running_drivers_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Those in Barograph's own folders are part of these."""
    state = tmp_path / "state"
    monkeypatch.setenv(STATE_VARIABLE, str(state))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(exposure, "own_processes", lambda: iter(()))
    (state / "drivers").mkdir(mode=0o700, parents=True)
    state.chmod(0o700)
    for name in ("checkpoint", "history"):
        (open_folder / name).mkdir(mode=0o755)
        (open_folder / name / "row").touch(mode=0o644)
    uses = DriverUses(
        7, (f"{open_folder}/checkpoint", "hdfs://far/checkpoint"), (str(open_folder / "history"), f"{state}/own"),
        (PythonPort(4000, "accumulators", True),), 9, False,
    )  # fmt: skip
    driver = Endpoint(state / "drivers" / "driver-7.sock", {USES: lambda _: to_json(uses)})
    silent = Endpoint(state / "drivers" / "driver-8.sock", {})
    try:
        assert asked_drivers() == (uses,)
        (warning,) = caplog.messages
        assert str(silent.path) in warning and "there is no verb 'uses'" in warning
        found = {f.name + " " + f.found.split(":")[0]: f for f in exposure.exposed()}
    finally:
        driver.close()
        silent.close()
    assert set(found) == {
        f"files of state {state}", f"files of cache {tmp_path}/cache", "checkpoint of driver 7 hdfs",
        f"checkpoint of driver 7 {open_folder}/checkpoint", f"history of driver 7 {open_folder}/history",
    }  # fmt: skip
    read = found[f"history of driver 7 {open_folder}/history"]
    assert (read.ok, read.found.endswith("other users can enter and use row")) == (False, True)
    assert not found[f"checkpoint of driver 7 {open_folder}/checkpoint"].ok
    assert not found["checkpoint of driver 7 hdfs"].essential
