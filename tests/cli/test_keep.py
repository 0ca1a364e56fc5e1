"""Real programs are kept: started again when they die, ended with what they leave behind, and signals passed on."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barograph.cli.main import main
from barograph.engines.spark.cluster.processes import identify

QUICK = ("--first-wait", "10ms", "--longest-wait", "20ms")
DEADLINE_S = 60.0


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen in time: {what}"
        time.sleep(0.02)


@contextmanager
def keep(*words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "barograph.cli.main", "keep", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def counting(folder: Path, then: str) -> tuple[str, ...]:
    """A program that notes its process id at each start."""
    return ("--", "sh", "-c", f"echo $$ >> {folder}/starts; n=$(wc -l < {folder}/starts); {then}")


def starts(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "starts").read_text().split()]
    except OSError:
        return []


def test_a_program_that_ends_in_order_is_done(tmp_path: Path) -> None:
    assert main(["keep", *QUICK, *counting(tmp_path, "exit 0")]) == 0
    assert len(starts(tmp_path)) == 1


def test_a_program_that_dies_is_started_again_until_it_ends_in_order(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["keep", *QUICK, *counting(tmp_path, "case $n in 1) exit 3;; 2) kill -9 $$;; esac")]) == 0
    assert len(starts(tmp_path)) == 3
    said = [line for line in capfd.readouterr().err.splitlines() if "started again" in line]
    assert "ended with code 3" in said[0]
    assert "it is started again in 0.01 s" in said[0]
    assert "ended by SIGKILL" in said[1]
    assert "it is started again in 0.02 s" in said[1]


def test_it_gives_up_only_where_it_was_asked_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["keep", *QUICK, "--most-restarts", "2", *counting(tmp_path, "exit 7")]) == 7
    assert len(starts(tmp_path)) == 3
    assert "given up after 2 restarts" in capfd.readouterr().err


def test_restarts_that_are_long_ago_do_not_count(tmp_path: Path) -> None:
    words = (*QUICK, "--most-restarts", "1", "--within", "1ms", *counting(tmp_path, "[ $n = 5 ] || exit 7"))
    assert main(["keep", *words]) == 0
    assert len(starts(tmp_path)) == 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on_and_it_ends_with_the_program(tmp_path: Path, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    program = f"trap 'touch {tmp_path}/heard; exit 5' {name}; touch {tmp_path}/ready; while :; do sleep 0.02; done"
    with keep(*counting(tmp_path, program)) as process:
        wait_for((tmp_path / "ready").exists, "the program runs")
        process.send_signal(number)
        assert process.wait(DEADLINE_S) == 5
    assert (tmp_path / "heard").exists()
    assert len(starts(tmp_path)) == 1


def test_a_program_that_does_not_heed_the_signal_is_killed(tmp_path: Path) -> None:
    program = f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.02; done"
    with keep("--end-within", "200ms", *counting(tmp_path, program)) as process:
        wait_for((tmp_path / "ready").exists, "the program runs")
        process.terminate()
        assert process.wait(DEADLINE_S) == 128 + signal.SIGKILL
    (pid,) = starts(tmp_path)
    assert identify(pid) is None


def test_a_signal_between_two_programs_ends_it(tmp_path: Path) -> None:
    with keep("--first-wait", "1h", "--longest-wait", "1h", *counting(tmp_path, "exit 3")) as process:
        assert process.stderr is not None
        assert "it is started again in 3600 s" in process.stderr.readline()
        process.terminate()
        assert process.wait(DEADLINE_S) == 3


def test_what_a_dead_program_leaves_behind_is_killed_before_the_next_start(tmp_path: Path) -> None:
    program = f"[ $n = 2 ] && exit 0; sleep 1000 & echo $! > {tmp_path}/left; kill -9 $$"
    with keep(*QUICK, *counting(tmp_path, program)) as process:
        assert process.wait(DEADLINE_S) == 0
        assert process.stderr is not None
        left = int((tmp_path / "left").read_text())
        assert f"killed what the program left behind: process {left}" in process.stderr.read()
    assert identify(left) is None


def test_words_of_the_program_are_its_own(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BAROGRAPH_LOG_LEVEL", raising=False)
    assert main(["keep", "--", "echo", "--log-level", "loud", "--most-restarts", "-4,4"]) == 0
    assert capfd.readouterr().out == "--log-level loud --most-restarts -4,4\n"
    assert "BAROGRAPH_LOG_LEVEL" not in os.environ


def test_wrong_input_is_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["keep"]) == 2
    assert main(["keep", "--", "/no/such/program"]) == 2
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "barograph keep: which program? barograph keep -- COMMAND [ARGUMENT ...]"
    assert said[1] == "barograph keep: /no/such/program cannot be started: No such file or directory"
