"""What a program's session gets at the last moment before Spark's context is made, and how a refusal is told."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from barograph.engines.spark.conf import LOCAL_FILES, plugin_settings
from barograph.model import BadInput
from barograph.submit import hooks
from barograph.submit.session_settings import add_to_sessions, settings_for

OURS = plugin_settings(ship=True)


class StoppedMeanwhileError(Py4JJavaError):  # type: ignore[misc]  # Py4J ships no types
    """As Spark raises it where a standalone master does not take the application."""

    def __init__(self) -> None:
        Exception.__init__(self, "Cannot call methods on a stopped SparkContext")

    def __str__(self) -> str:
        return "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext"


class Conf(dict[str, str]):
    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802  # Spark's name
        return list(self.items())

    def set(self, key: str, value: str) -> None:
        self[key] = value


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str], Exception | None], tuple[Conf, list[str]]]:
    """Makes a session without Spark. Returns its settings, and what was said."""
    monkeypatch.setattr(hooks, "_said", set())

    def make(settings: dict[str, str], error: Exception | None) -> tuple[Conf, list[str]]:
        conf, said = Conf(settings), list[str]()

        def initialized(*_: Any) -> None:
            if error is not None:
                raise error

        monkeypatch.setattr(SparkContext, "_initialize_context", initialized)
        context, contexts = SimpleNamespace(_conf=conf), cast(Any, SparkContext)
        monkeypatch.setattr(
            SparkSession.Builder, "getOrCreate", lambda _: contexts._initialize_context(context, None)
        )  # fmt: skip
        add_to_sessions(OURS, "", said.append)
        SparkSession.builder.getOrCreate()
        return conf, said

    return make


Made = Callable[[dict[str, str], Exception | None], tuple[Conf, list[str]]]


def test_a_session_gets_our_settings(sessions: Made) -> None:
    conf, said = sessions({"spark.master": "spark://host:7077", "spark.plugins": "their.Plugin"}, None)
    assert conf["spark.plugins"] == f"their.Plugin,{OURS['spark.plugins']}"
    assert conf["spark.shuffle.manager.incremental"] == OURS["spark.shuffle.manager.incremental"]
    assert said == []


def test_a_hook_that_is_taken_is_said(sessions: Made) -> None:
    (line,) = sessions({"spark.master": "local[2]", "spark.shuffle.manager.incremental": "their.Manager"}, None)[1]
    assert line.startswith("a part of Barograph did not get in: spark.shuffle.manager.incremental is 'their.Manager'")


def test_a_missing_secret_is_one_sentence(sessions: Made) -> None:
    with pytest.raises(BadInput, match="spark://host:7077 did not take the application: either the cluster asks for a"):
        sessions({"spark.master": "spark://host:7077"}, StoppedMeanwhileError())
    with pytest.raises(StoppedMeanwhileError):
        sessions({"spark.master": "local[2]"}, StoppedMeanwhileError())


def test_the_application_master_of_yarn_is_not_told_of_our_class_for_files() -> None:
    assert LOCAL_FILES in settings_for(OURS, "spark://host:7077")
    assert settings_for(OURS, "yarn") == {key: value for key, value in OURS.items() if key != LOCAL_FILES}
