"""``barograph.start`` goes by its arguments, then the session's keys, then barograph.toml, then the defaults."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import barograph
from barograph.engines.spark.driver import application
from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.model import BadInput


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the supervisor is asked for, and the settings of the session."""
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {"session": {}}
    supervisor = SimpleNamespace(start=lambda _build, _checkpoint, **more: found.update(more))
    monkeypatch.setattr(application, "supervisor_of_session", lambda _serve: supervisor)
    monkeypatch.setattr(application, "session_settings", lambda: found["session"])
    return found


def build() -> Any:
    raise AssertionError("nothing is started here")


def test_the_defaults(started: dict[str, Any]) -> None:
    barograph.start(build)
    assert (started["options"], started["limits"]) == (QueryOptions(), RestartLimits())


def test_arguments_win_over_keys_and_keys_over_the_file(started: dict[str, Any]) -> None:
    text = "[query]\nlevel = 3\ndesired-nodes = 4\nminimum-nodes = 1\n[restart]\nin-a-row = 5\n"
    Path("barograph.toml").write_text(text, encoding="utf-8")
    started["session"] = {"spark.barograph.query.desiredNodes": "2", "spark.barograph.query.level": "2"}
    barograph.start(build, level=1)
    assert started["options"] == QueryOptions(level=1, desired_nodes=2, minimum_nodes=1)
    assert started["limits"] == RestartLimits(in_a_row=5)


def test_a_wrong_argument(started: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="level must be a whole number of at least 1, not 0: write level=1"):
        barograph.start(build, level=0)
    assert "options" not in started
