"""What holds for every command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from barograph.cli import main as command_line
from barograph.cli.main import COMMANDS, main, module_of

QUIET = {
    "a command that prints": ["sim", "--list"],
    "the help": ["run", "--help"],
    "json": ["policies", "--format", "json"],
    "more than a buffer": ["plan", "--name", "largeCluster01", "--policy", "even", "--format", "json"],
}


@pytest.mark.parametrize("case", QUIET)
@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
def test_a_reader_that_stops_reading_ends_it_quietly(case: str, buffered: bool) -> None:
    """As in ``barograph sim --list | head -1``: the pipe is closed before anything is written."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, *([] if buffered else ["-u"]), "-m", "barograph.cli.main", *QUIET[case]]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    os.close(write)
    assert done.stderr == ""
    # As a shell shows a command that SIGPIPE ended; argparse itself ignores that its help is not read.
    assert done.returncode == (0 if case == "the help" else 141)


@pytest.mark.parametrize("case", [c for c in QUIET if c != "the help"])
def test_output_on_a_full_disk_is_one_sentence(case: str) -> None:
    command = [sys.executable, "-m", "barograph.cli.main", *QUIET[case]]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.stderr == "barograph: the output cannot be written: No space left on device\n"
    assert done.returncode == 1


def test_it_runs_without_an_output() -> None:
    command = f"{sys.executable} -m barograph.cli.main policies >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_another_broken_pipe_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> int:
        raise BrokenPipeError("a driver's socket")

    monkeypatch.setattr(command_line, "_run", broken)
    with pytest.raises(BrokenPipeError, match="socket"):
        main(["policies"])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_of_its_own(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert f"usage: barograph {command}" in shown
    assert max(map(len, shown.splitlines())) <= 120
    assert (module_of(command).__doc__ or "").splitlines()[0] in shown
