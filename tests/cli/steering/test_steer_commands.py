"""steer, freeze, thaw and decisions against a simulated cluster that is served as a driver's is."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.control.test_process import Cluster, wait_until

from barograph.cli.main import main
from barograph.cli.steering.decisions import chosen_controller
from barograph.control.attach import AttachedController, attach_controller
from barograph.control.process import ControllerConfig
from barograph.engines.spark.folders import state_folder
from barograph.history.read import last_number

pytestmark = pytest.mark.limit(300)


class ServedCluster(Cluster):
    """As a driver's endpoint: with a status, and it can be frozen."""

    def __init__(self, folder: Path) -> None:
        self.frozen = False
        super().__init__(folder, more={"status": self.status, "freeze": self.freeze})

    def status(self, _: object) -> dict[str, Any]:
        there = [c for c in self.controllers.table() if c["attached"]]
        return {"app": "sim", "run": "", "pid": os.getpid(), "frozen": self.frozen, "controllers": there}

    def freeze(self, body: Any) -> None:
        self.frozen = body["on"]


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    monkeypatch.chdir(tmp_path)
    folder = state_folder() / "drivers"
    folder.mkdir(mode=0o700)
    found = ServedCluster(folder)
    yield found
    found.close()


def started(*words: str) -> subprocess.Popen[str]:
    """A shell that runs the tests in the background lets its children ignore interrupts; this one must not."""
    as_usual = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [sys.executable, "-u", "-c", f"{as_usual}from barograph.cli.main import main; sys.exit(main())", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_steer_acts_until_it_is_interrupted(driver: ServedCluster) -> None:
    with started("steer", "sim", "--policy", "adaptive", "--act", "--cycle", "300ms", "--recovery", "off") as steer:
        assert steer.stdout is not None
        first = steer.stdout.readline()
        assert first.startswith("-- policy adaptive acts on sim; its history is ")
        second = steer.stdout.readline()
        assert "  adaptive  t: " in second and "; because " in second and second.endswith("applied\n")
        assert driver.plans and driver.paces == []
        (entry,) = driver.controllers.table()
        assert (entry["mode"], entry["pid"], entry["attached"]) == ("act", steer.pid, True)
        again = subprocess.run(
            [sys.executable, "-m", "barograph.cli.main", "steer", "--act"], capture_output=True, text=True, check=False
        )
        assert (again.returncode, again.stdout) == (2, "")
        assert again.stderr == (
            f"barograph steer: a controller (policy adaptive, process {steer.pid}) already acts on this driver: end "
            "that one first, or only advise\n"
        )
        steer.send_signal(signal.SIGINT)
        steer.wait(60)
    plans = len(driver.plans)
    assert not driver.controllers.table()[0]["attached"]
    now_s = driver.sim.now_s
    wait_until(lambda: driver.sim.now_s > now_s + 2.0)
    assert len(driver.plans) == plans, "its controller has ended with it"


def test_steer_advises_unless_told_to_act(driver: ServedCluster, capfd: pytest.CaptureFixture[str]) -> None:
    with started("steer", "--cycle", "300ms", "--history", "seen", "--format", "json") as steer:
        assert steer.stdout is not None
        assert steer.stdout.readline().startswith(
            "-- policy adaptive advises, and changes nothing of, sim; its history"
        )
        decision = json.loads(steer.stdout.readline())
        assert (decision["outcome"], decision["mode"], decision["policy"]) == ("advised", "advise", "adaptive")
        assert main(["decisions", "sim", "--last", "1", "--format", "json"]) == 0
        assert json.loads(capfd.readouterr().out)["outcome"] == "advised"
        steer.send_signal(signal.SIGTERM)
        steer.wait(60)
    assert (driver.plans, driver.paces) == ([], [])
    assert main(["decisions"]) == 0
    assert "  adaptive  t: " in capfd.readouterr().out, "also of a controller that has ended"


@pytest.mark.slow  # three seconds; the test below follows them too, from one controller to the next
def test_decisions_are_followed(driver: ServedCluster, tmp_path: Path) -> None:
    config = ControllerConfig(
        str(driver.path), str(tmp_path / "h"), str(tmp_path / "beat"), cycle_s=0.3, release_after_s=None
    )
    with attach_controller(config, tmp_path / "log"), started("decisions", "sim", "--follow", "--all") as follow:
        assert follow.stdout is not None
        numbers = [follow.stdout.readline() for _ in range(6)]
        assert len(set(numbers)) == 6 and all("  adaptive  t: " in line for line in numbers)
        driver.close()
        assert follow.wait(60) == 0, "it ends with the driver"


def test_the_controller_that_begins_to_act_is_followed(driver: ServedCluster, tmp_path: Path) -> None:
    def attached(mode: str, policy: str, history: Path) -> AttachedController:
        config = ControllerConfig(
            str(driver.path), str(history), str(tmp_path / f"beat-{policy}"), policy, cycle_s=0.3, mode=mode,
            release_after_s=None,
        )  # fmt: skip
        return attach_controller(config, tmp_path / f"log-{policy}")

    used, other = tmp_path / "used", tmp_path / "other"
    with attached("act", "even", used):
        wait_until(lambda: last_number(used) >= 2)
    with attached("advise", "adaptive", other), started("decisions", "sim", "--follow", "--all") as follow:
        assert follow.stdout is not None
        lines = iter(follow.stdout.readline, "")
        assert "  adaptive  t: " in next(lines)
        with attached("act", "liu", used):
            assert "--- policy liu (act) from now on ---\n" in islice(lines, 100), "those of adaptive come before"
            assert [next(lines).split()[2] for _ in range(3)] == ["liu"] * 3, "not what its history had before"
        assert "--- policy adaptive (advise) from now on ---\n" in islice(lines, 100)
        driver.close()
        assert follow.wait(60) == 0


def test_freeze_and_thaw(driver: ServedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["freeze", "sim"]) == 0 and driver.frozen
    assert capsys.readouterr().out == f"sim is frozen: nothing is changed until 'barograph thaw {os.getpid()}'\n"
    assert main(["thaw"]) == 0 and not driver.frozen
    assert capsys.readouterr().out == "sim is no longer frozen: no controller acts on it\n"
    assert main(["thaw"]) == 0
    assert capsys.readouterr().out == "sim was not frozen: no controller acts on it\n"


@pytest.mark.usefixtures("driver")
def test_a_file_of_options_may_hold_for_other_commands_too() -> None:
    Path("barograph.toml").write_text('enforce = "cgroup"\n[query]\nlevel = 1\n', encoding="utf-8")
    with started("steer", "--conf", "spark.barograph.cycle=300ms") as steer:
        assert steer.stdout is not None
        assert steer.stdout.readline().startswith("-- policy adaptive advises")
        steer.send_signal(signal.SIGTERM)
        steer.wait(60)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["steer", "other"], "no driver is named 'other': name one of sim"),
        (["steer", "--policy", "adaptiv"], "--policy must be the name of a policy, not 'adaptiv'"),
        (["steer", "--option", "lent=1"], "policy adaptive has no option 'lent'"),
        (["steer", "--cycle", "2"], "--cycle must be a time above 0s, not '2': write --cycle 2s"),
        (
            ["steer", "--conf", "spark.barograph.enforce=cgroup"],
            "spark.barograph.enforce is read when the session is made: set spark.barograph.enforce in its builder, by",
        ),
        (
            ["steer", "--conf", "spark.barograph.query.level=1"],
            "spark.barograph.query.level is read when a query is started: give query.level to barograph.start",
        ),
        (["decisions", "sim"], "no controller is or was attached to sim: 'barograph steer"),
        (["decisions", "--last", "x"], "--last must be a whole number"),
        (["freeze", "other"], "no driver is named 'other'"),
        (["thaw", "other"], "no driver is named 'other'"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    driver: ServedCluster, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == "" and said in told.err and told.err.count("\n") == 1
    assert not driver.frozen and driver.controllers.table() == []


def test_the_decisions_of_the_controller_that_acts_are_shown() -> None:
    def known(number: int, mode: str, attached: bool) -> dict[str, Any]:
        return {"number": number, "mode": mode, "attached": attached}

    acts, advises, ended = known(1, "act", True), known(2, "advise", True), known(3, "act", False)
    assert chosen_controller([acts, advises, ended]) is acts
    assert chosen_controller([advises, ended]) is advises
    assert chosen_controller([known(0, "advise", False), ended]) is ended
    assert chosen_controller([]) is None
