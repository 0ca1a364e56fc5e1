"""A part that did not get into a session is said when a query is started, once."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from barograph.engines.spark.conf import plugin_settings
from barograph.submit import hooks
from barograph.submit.settings import EXTENSIONS

OURS = plugin_settings()
Said = Callable[..., list[str]]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """What is said of a session with these settings, whose planner has these rules."""
    monkeypatch.setattr(hooks, "_said", set())

    def of(rules: str, **settings: str) -> list[str]:
        conf = {**OURS, **{key.replace("__", "."): value for key, value in settings.items()}}
        extensions = SimpleNamespace(buildColumnarRules=lambda _: SimpleNamespace(toString=lambda: rules))
        spark = SimpleNamespace(
            sparkContext=SimpleNamespace(getConf=lambda: SimpleNamespace(getAll=lambda: list(conf.items()))),
            _jsparkSession=SimpleNamespace(extensions=lambda: extensions),
        )
        # As in a thread that the program started: no session is active there.
        monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
        hooks.say_left_out_of_session(cast(SparkSession, spark))
        return capsys.readouterr().err.splitlines()

    return of


def test_a_session_with_all_of_it_needs_no_word(said: Said) -> None:
    assert said(f"List({OURS[EXTENSIONS]}$$anon$1@7f, their.Rule@2a)") == []


def test_an_extension_that_spark_could_not_load_is_said_once(said: Said) -> None:
    (line,) = said("List()")
    assert line.startswith(f"barograph: a part of Barograph did not get in: {EXTENSIONS} names {OURS[EXTENSIONS]}, and")
    assert "could not load it" in line
    assert said("List()") == []


def test_an_extension_that_is_not_named_is_said_as_such(said: Said) -> None:
    (line,) = said("List(their.Rule@2a)", spark__sql__extensions="their.Rules")
    assert line.endswith(f"{EXTENSIONS} is 'their.Rules', without {OURS[EXTENSIONS]}")


def test_a_hook_that_another_class_has_is_said(said: Said) -> None:
    (line,) = said(OURS[EXTENSIONS], spark__shuffle__manager__incremental="their.Manager")
    assert "spark.shuffle.manager.incremental is 'their.Manager'" in line
