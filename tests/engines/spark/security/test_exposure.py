"""What the doctor says is open, and to whom."""

import json
from pathlib import Path

import pytest

from barograph.cli.main import main
from barograph.engines.spark.folders import CACHE_VARIABLE, STATE_VARIABLE
from barograph.engines.spark.health import Finding
from barograph.engines.spark.security import exposure
from barograph.engines.spark.security.exposure import SparkProcess, folder_finding, port_findings
from barograph.engines.spark.security.ports import ListeningPort
from barograph.engines.spark.security.secret import DAEMONS_FILE, make_secret

OWN, NETWORK, WIDE = (ListeningPort(7, address, 4000) for address in ("127.0.0.2", "10.0.0.1", "::"))
MASTER = "spark://127.0.0.1:7077"


def findings(role: str, *words: str, ports: tuple[ListeningPort, ...] = (OWN,), guarded: bool = False) -> list[Finding]:
    return list(port_findings(SparkProcess(7, role, words, ports, guarded), frozenset({MASTER})))


def test_a_port_without_a_secret_is_open() -> None:
    (found,) = findings("master", "--host", "127.0.0.2")
    assert not found.ok
    assert found.essential
    assert found.found == "127.0.0.2:4000: open to this machine, WITHOUT a secret"
    (found,) = findings("driver", ports=(NETWORK,))
    assert "open to the network" in found.found


def test_every_way_to_a_secret_is_known(tmp_path: Path) -> None:
    make_secret(tmp_path)
    assert findings("worker", "--properties-file", str(tmp_path / DAEMONS_FILE))[0].ok
    assert findings("executor", "-Dspark.authenticate=true")[0].ok
    assert findings("driver", "--conf", "spark.authenticate=true")[0].ok
    assert findings("driver", "--conf", f"spark.master={MASTER}")[0].ok
    (tmp_path / "other").write_text("spark.authenticate false\n")
    assert not findings("worker", "--properties-file", str(tmp_path / "other"))[0].ok
    assert not findings("worker", "--properties-file")[0].ok
    assert not findings("driver", "--conf", "spark.master=spark://elsewhere:7077")[0].ok


def test_ports_on_every_interface_are_open_without_the_plugin() -> None:
    (found,) = findings("executor", "-Dspark.authenticate=true", ports=(WIDE,))
    assert (found.ok, "every interface" in found.found) == (False, True)
    assert findings("executor", ports=(WIDE,), guarded=True)[0].ok
    assert not findings("worker", ports=(WIDE,), guarded=True)[0].ok


def test_a_folder_is_open_if_others_can_enter_it_and_read_something(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    (folder / "log").touch(mode=0o644)
    assert folder_finding("files", folder).ok
    folder.chmod(0o755)
    found = folder_finding("files", folder)
    assert (found.ok, found.advice) == (False, f"chmod 700 {folder}")
    assert "log" in found.found
    (folder / "log").chmod(0o600)
    assert folder_finding("files", folder).ok


def test_the_exit_code_says_that_something_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr("barograph.engines.spark.health.examine", lambda: ())
    monkeypatch.setattr(exposure, "spark_processes", lambda: iter(()))
    assert main(["doctor", "--json"]) == 0
    assert [f["name"] for f in json.loads(capsys.readouterr().out)] == ["files of state", "files of cache"]
    monkeypatch.setattr(exposure, "spark_processes", lambda: iter([SparkProcess(7, "master", (), (OWN,))]))
    assert main(["doctor"]) == 1
    assert "OPEN  ports of master 7" in capsys.readouterr().out
