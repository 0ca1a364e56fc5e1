"""The manager carries out instructions, survives a restart, and answers ``barograph priority`` over a socket."""

import json
import logging
import os
import re
import time
from collections.abc import Mapping
from inspect import signature
from pathlib import Path

import pytest
from tests.small_disk import fill, small_disk

from barograph.cli.main import main
from barograph.engines.spark.driver.endpoint import Endpoint
from barograph.model import BadInput
from barograph.priority import PriorityManager
from barograph.priority.machine import PriorityPhase


class Water:
    """Topologies whose rows in flight drain while their sources are paused, one row in each call."""

    def __init__(self, in_flight: int = 2) -> None:
        self.did: list[str] = []
        self.in_flight = {"a": in_flight, "b": in_flight}
        self.paused: set[str] = set()
        self.levels: list[dict[str, int]] = []
        self.heeds = True

    def heeds_triggers(self) -> bool:
        return self.heeds

    def pause(self, topology: str) -> None:
        self.did.append(f"pause {topology}")
        self.paused.add(topology)

    def drained(self, topology: str) -> bool:
        self.in_flight[topology] -= topology in self.paused
        return self.in_flight[topology] <= 0

    def reschedule(self, levels: Mapping[str, int]) -> bool:
        assert self.paused, "rescheduled while rows flow"
        self.did.append("reschedule")
        self.levels.append(dict(levels))
        return True

    def resume(self, topology: str) -> None:
        self.did.append(f"resume {topology}")
        self.paused.discard(topology)

    def flows(self, topology: str) -> bool:
        return topology not in self.paused


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 0.1
        return self.now_s


def manager(path: Path, water: Water) -> PriorityManager:
    found = PriorityManager(path, water, clock=Clock())
    found.know({"a": 2, "b": 3})
    return found


def test_the_protocol_in_order(tmp_path: Path) -> None:
    water = Water()
    found = manager(tmp_path / "p.json", water)
    found.trigger("a", True)
    for _ in range(5):
        found.turn()
    assert water.did == ["pause a", "reschedule", "resume a"]
    assert water.levels == [{"a": 1, "b": 3}]
    assert found.levels() == {"a": 1, "b": 3}
    assert [phase for _, name, phase in found.passed if name == "a"] == [
        PriorityPhase.DRAINING, PriorityPhase.RESCHEDULING, PriorityPhase.RESUMING, PriorityPhase.STEADY,
    ]  # fmt: skip
    assert sorted(at for at, _, _ in found.passed) == [at for at, _, _ in found.passed]
    assert found.told[0] == "a: trigger on by its user" and "resumed" in found.told[1]
    before = (tmp_path / "p.json").stat().st_mtime_ns
    found.turn()
    assert (tmp_path / "p.json").stat().st_mtime_ns == before, "nothing happened, and nothing is written"


def test_each_change_is_a_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What, by what, and how long the topology was paused."""
    with caplog.at_level(logging.INFO, "barograph.priority"):
        found = manager(tmp_path / "p.json", Water())
        found.trigger("a", True)
        for _ in range(5):
            found.turn()
        found.set_level("b", 5)
        for _ in range(5):
            found.turn()
    lines = [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
    assert lines[0] == "a: trigger on by its user"
    assert [re.sub(r"[0-9.]+ s ", "S s ", line) for line in lines[1:]] == [
        "a: level 1, resumed S s after it was asked for", "b: level 5, resumed S s after it was asked for",
    ]  # fmt: skip


def test_under_static_levels_a_trigger_pauses_nothing_and_changes_nothing(tmp_path: Path) -> None:
    water = Water()
    found = manager(tmp_path / "p.json", water)
    found.trigger("a", True)
    for _ in range(5):
        found.turn()
    did, water.heeds = list(water.did), False
    found.trigger("b", True)
    with pytest.raises(BadInput, match="a trigger would change nothing: the present policy uses only the levels"):
        found.verb({"do": "trigger", "topology": "b", "on": True})
    with pytest.raises(BadInput, match="there is no topology 'x'"):
        found.trigger("x", True)
    for _ in range(5):
        found.turn()
    assert water.did == did and found.levels() == {"a": 1, "b": 3}
    assert "b: trigger on by its user changes nothing" in found.told[-1]
    found.trigger("a", False)
    found.set_level("b", 4)
    for _ in range(5):
        found.turn()
    assert found.levels() == {"a": 2, "b": 4}, "a trigger that was on can end, and users set levels"


def test_a_new_manager_continues_where_the_last_one_died(tmp_path: Path) -> None:
    water = Water(in_flight=3)
    first = manager(tmp_path / "p.json", water)
    first.trigger("a", True)
    first.turn()
    again = manager(tmp_path / "p.json", water)
    assert water.did == ["pause a", "pause a"]
    for _ in range(5):
        again.turn()
    assert water.did[2:] == ["reschedule", "resume a"]
    assert manager(tmp_path / "p.json", water).levels() == {"a": 1, "b": 3}


class Times:
    """A wall clock and a clock that never goes back; both advance by ``sleep``."""

    def __init__(self) -> None:
        self.wall_s, self.mono_s = 1_000_000.0, 50.0

    def sleep(self, seconds: float) -> None:
        self.wall_s += seconds
        self.mono_s += seconds

    def manager(self, path: Path, water: Water) -> PriorityManager:
        found = PriorityManager(path, water, clock=lambda: self.mono_s, wall=lambda: self.wall_s)
        found.know({"a": 2, "b": 3})
        return found


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_a_clock_that_is_set_changes_no_wait(tmp_path: Path, jump_s: float) -> None:
    times, water = Times(), Water(in_flight=1000)  # it does not drain
    found = times.manager(tmp_path / "p.json", water)
    found.trigger("a", True)
    times.wall_s += jump_s
    times.sleep(9.0)
    found.turn()
    assert water.paused == {"a"}
    times.sleep(2.0)
    found.turn()
    assert water.paused == set(), "it is resumed after 10 s, by whatever clock"
    assert found.levels() == {"a": 2, "b": 3}


def test_waits_go_by_the_clock_that_is_never_set() -> None:
    clocks = {name: p.default for name, p in signature(PriorityManager).parameters.items() if name in ("clock", "wall")}
    assert clocks == {"clock": time.monotonic, "wall": time.time}


def test_what_is_stored_is_wall_time_and_holds_after_a_restart(tmp_path: Path) -> None:
    times, water = Times(), Water()
    first = times.manager(tmp_path / "p.json", water)
    first.trigger("a", True, by="its rate")
    stored = json.loads((tmp_path / "p.json").read_text())["standings"]["a"]
    assert stored["on_s"] == stored["since_s"] == 1_000_000.0
    for _ in range(5):
        first.turn()
    times.sleep(20.0)
    times.mono_s = 1.0  # the machine was booted again
    second = times.manager(tmp_path / "p.json", water)
    second.trigger("a", False, by="its rate")
    assert second.state.of("a").on, "it stays on for 30 s"
    times.sleep(11.0)
    second.trigger("a", False, by="its rate")
    assert not second.state.of("a").on, "20 s before the restart count"


def test_a_clock_that_was_set_back_while_no_driver_ran_extends_no_wait(tmp_path: Path) -> None:
    times, water = Times(), Water()
    first = times.manager(tmp_path / "p.json", water)
    first.trigger("a", True, by="its rate")
    for _ in range(5):
        first.turn()
    times.wall_s -= 3600.0
    second = times.manager(tmp_path / "p.json", water)
    times.sleep(31.0)
    second.trigger("a", False, by="its rate")
    assert not second.state.of("a").on


def test_on_a_full_disk_a_change_is_completed_and_a_new_one_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    water = Water()
    with small_disk(tmp_path / "disk") as disk:
        found = manager(disk / "p.json", water)
        found.trigger("a", True)
        filler = fill(disk)
        with pytest.raises(BadInput, match=r"cannot be saved in .*: No space left on device; make room and ask again"):
            found.set_level("b", 4)
        for _ in range(5):
            found.turn()
        assert water.did == ["pause a", "reschedule", "resume a"] and water.paused == set()
        assert found.levels() == {"a": 1, "b": 3}
        filler.unlink()
        found.turn()
        assert manager(disk / "p.json", Water()).levels() == {"a": 1, "b": 3}, "saved as soon as there is room"
    assert any("priorities are not saved" in message for message in caplog.messages)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PriorityManager:
    state = tmp_path / "state"
    (state / "drivers").mkdir(parents=True, mode=0o700)
    state.chmod(0o700)
    monkeypatch.setenv("BAROGRAPH_STATE", str(state))
    found = manager(tmp_path / "p.json", Water())
    status = {"run": "", "app": "mine", "pid": os.getpid(), "topologies": [{"name": "a"}, {"name": "b"}]}
    verbs = {"status": lambda _: status, "priority": found.verb}
    endpoint = Endpoint(state / "drivers" / f"driver-{os.getpid()}.sock", verbs)
    monkeypatch.setattr(found, "endpoint", endpoint, raising=False)
    return found


def test_the_command_line_asks_the_driver(served: PriorityManager, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["priority", "list", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(r["topology"], r["level"], r["trigger"]) for r in rows] == [("a", 2, False), ("b", 3, False)]
    assert main(["priority", "trigger", "a", "on"]) == 0
    assert "draining" in capsys.readouterr().out
    for _ in range(5):
        served.turn()
    assert main(["priority", "set", "b", "5", "--driver", "mine"]) == 0
    capsys.readouterr()
    for _ in range(5):
        served.turn()
    assert served.levels() == {"a": 1, "b": 5}
    assert main(["priority", "trigger", "a", "off", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["trigger"] is False


WRONG = {
    "unknown word": (["raise"], "there is no action 'raise'; there are list, set and trigger"),
    "no topology": (["set"], "set needs a TOPOLOGY"),
    "no level": (["set", "a"], "set needs a LEVEL"),
    "bad level": (["set", "a", "0"], "a level is a whole number of at least 1, not '0'"),
    "neither on nor off": (["trigger", "a", "up"], "trigger needs on or off, not 'up'"),
    "level of set": (["set", "a", "1", "--level", "2"], "--level belongs to trigger"),
    "list of one": (["list", "a"], "list takes no TOPOLOGY"),
    "unknown topology": (["trigger", "x", "on"], "there is no topology 'x'; there are a, b"),
    "unknown driver": (["list", "--driver", "other"], "no driver is named 'other'"),
}


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("case", WRONG)
def test_nonsense_is_refused_in_one_line(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, sentence = WRONG[case]
    assert main(["priority", *arguments]) == 2
    shown = capsys.readouterr()
    assert sentence in shown.err and shown.err.count("\n") == 1 and shown.out == ""


def test_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BAROGRAPH_STATE", str(tmp_path / "empty"))
    assert main(["priority", "list"]) == 2
    assert "no driver answers" in capsys.readouterr().err
