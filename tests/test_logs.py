"""Logging of Barograph's own processes: options, environment, formats, warnings that repeat."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barograph import logs
from barograph.cli.main import main
from barograph.logs import FIELDS, JsonLines, LogSettings, OnceOnly, settings_of_environment, without_log_options

PACKAGE = logging.getLogger("barograph")


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (logs.LEVEL_VARIABLE, logs.FORMAT_VARIABLE):
        monkeypatch.setenv(name, "")  # so that it is put back even if the test sets it itself
    handlers, level = list(PACKAGE.handlers), PACKAGE.level
    yield
    PACKAGE.handlers[:] = handlers
    PACKAGE.setLevel(level)


def test_a_library_installs_no_handler() -> None:
    show = "import logging, barograph; print([type(h).__name__ for h in logging.getLogger('barograph').handlers])"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert done.stdout == "['NullHandler']\n"


PLACES = {
    "before the command": ["--log-level", "info", "--log-format=json", "policies", "--format", "json"],
    "after it": ["policies", "--log-level=info", "--format", "json", "--log-format", "json"],
    "on both sides": ["--log-format", "json", "policies", "--format", "json", "--log-level", "info"],
}


@pytest.mark.parametrize("case", PLACES)
def test_options_may_stand_anywhere(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert without_log_options(PLACES[case]) == ["policies", "--format", "json"]
    assert settings_of_environment() == LogSettings("info", "json"), "children find them in the environment"
    assert main(PLACES[case]) == 0
    logging.getLogger("barograph.some.module").info("seen")
    shown = capsys.readouterr()
    assert json.loads(shown.out) and json.loads(shown.err)["message"] == "seen"


WRONG = {
    "an unknown level": (
        ["--log-level", "loud", "policies"],
        "debug, info, warning, error, not 'loud': write --log-level info",
    ),
    "an unknown format": (["policies", "--log-format", "xml"], "text, json, not 'xml': write --log-format text"),
    "no value": (["policies", "--log-level"], "--log-level needs a value"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options_are_one_line(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, sentence = WRONG[case]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("barograph: ") and said.endswith(f"{sentence}\n") and said.count("\n") == 1


def test_a_file_of_options_may_choose_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of commands that read it. A flag wins."""
    monkeypatch.chdir(tmp_path)
    Path("barograph.toml").write_text('log-level = "debug"\nlog-format = "json"\n', encoding="utf-8")
    assert main(["config", "show", "--log-format", "text"]) == 0
    assert settings_of_environment() == LogSettings("debug", "text")
    assert PACKAGE.level == logging.DEBUG
    assert main(["config", "show", "--log-level", "error"]) == 0
    assert PACKAGE.level == logging.ERROR


def test_each_process_has_its_default_until_a_level_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    logs.set_up()
    assert PACKAGE.level == logging.WARNING
    logs.set_up("info")
    assert PACKAGE.level == logging.INFO
    assert sum(not isinstance(h, logging.NullHandler) for h in PACKAGE.handlers) == 1, "the earlier one is replaced"
    monkeypatch.setenv(logs.LEVEL_VARIABLE, "error")
    logs.set_up("info")
    assert PACKAGE.level == logging.ERROR


def test_a_text_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up()
    logging.getLogger("barograph.x").warning("%d nodes are missing", 2)
    assert capsys.readouterr().err.endswith(" WARNING barograph.x: 2 nodes are missing\n")


def test_a_json_line() -> None:
    record = logging.LogRecord("barograph.x", logging.INFO, "x.py", 1, "%d moves", (2,), None)
    record.created = 1_700_000_000.25
    setattr(record, FIELDS, {"moves": 2, "pause_s": 0.5})
    assert json.loads(JsonLines().format(record)) == {
        "time": "2023-11-14T22:13:20.250+00:00",
        "level": "info",
        "logger": "barograph.x",
        "message": "2 moves",
        "moves": 2,
        "pause_s": 0.5,
    }
    try:
        raise OSError("no disk")
    except OSError:
        record.exc_info = sys.exc_info()
    assert json.loads(JsonLines().format(record))["error"].endswith("OSError: no disk")


def test_a_warning_that_repeats_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    once = OnceOnly(logging.getLogger("barograph.x"))
    with caplog.at_level(logging.DEBUG, "barograph"):
        for text in ("no answer", "no answer", "refused", "no answer"):
            once.warn("driver", text)
        once.warn("disk", "no answer")
        once.over("driver")
        once.warn("driver", "no answer")
    assert [r.levelname for r in caplog.records] == ["WARNING", "DEBUG", *["WARNING"] * 4]
