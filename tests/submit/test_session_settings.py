"""What a program's session gets at the last moment before Spark's context is made, and how a refusal is told."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from barograph.engines.spark.cluster import runs
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.conf import LOCAL_FILES, plugin_settings
from barograph.engines.spark.security.closed_driver import CLOSED, CLOSED_LOCAL, OWNERS_FILES
from barograph.engines.spark.security.secret import make_secret, read_secret
from barograph.model import BadInput
from barograph.submit import hooks, session_settings
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


@pytest.mark.parametrize("master", ["local", "local[2]", "local[2,3]", "local[*]"])
def test_the_driver_of_a_local_master_is_closed(sessions: Made, master: str) -> None:
    conf, _ = sessions({"spark.master": master}, None)
    assert {key: conf.get(key) for key in CLOSED_LOCAL} == {
        "spark.authenticate": "true", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
    }  # fmt: skip
    assert "spark.authenticate.secret" not in conf, "Spark makes it itself"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://host", "local-cluster[1,1,512]"])
def test_the_driver_of_another_master_must_be_reached_by_its_executors(sessions: Made, master: str) -> None:
    assert not sessions({"spark.master": master}, None)[0].keys() & CLOSED_LOCAL.keys()


def test_what_a_program_opens_itself_stands_and_is_said(sessions: Made) -> None:
    theirs = {"spark.ui.enabled": "true", "spark.driver.host": "10.0.0.1"}
    conf, said = sessions({"spark.master": "local[2]", **theirs}, None)
    assert {key: conf.get(key) for key in CLOSED_LOCAL} == {
        **theirs, "spark.authenticate": "true", "spark.driver.bindAddress": None,
    }  # fmt: skip
    assert [line.split(":")[0] for line in said] == [
        "spark.driver.host is '10.0.0.1', not 127.0.0.1", "spark.ui.enabled is 'true', not false",
    ]  # fmt: skip
    assert said[1].endswith("are open to every user of this machine and to the network; leave that setting out")


@pytest.fixture
def own_cluster(monkeypatch: pytest.MonkeyPatch) -> Run:
    """The record and the files of one, without its processes."""
    run = replace(runs.claim(ClusterSettings(nodes=1), "own"), master="spark://127.0.0.1:7077")
    make_secret(run.folder)
    monkeypatch.setattr(session_settings, "run_of", lambda master: run if master == run.master else None)
    return run


def test_a_session_on_an_embedded_cluster_is_closed(sessions: Made, own_cluster: Run) -> None:
    conf, said = sessions({"spark.master": own_cluster.master}, None)
    assert CLOSED.items() <= conf.items()
    assert read_secret(own_cluster.folder).items() <= conf.items()
    assert said == []


def test_nothing_opens_the_driver_of_an_embedded_cluster(sessions: Made, own_cluster: Run) -> None:
    theirs = {
        "spark.ui.enabled": "true", "spark.driver.bindAddress": "0.0.0.0", "spark.network.crypto.enabled": "false",
        "spark.authenticate.secret": "of another cluster", "spark.driver.host": "127.0.0.1",
    }  # fmt: skip
    conf, said = sessions({"spark.master": own_cluster.master, "spark.executor.memory": "2g", **theirs}, None)
    assert CLOSED.items() <= conf.items()
    assert read_secret(own_cluster.folder).items() <= conf.items()
    assert conf["spark.executor.memory"] == "2g"
    assert {line.split(" ")[0] for line in said} == theirs.keys() - {"spark.driver.host"}
    assert not any("another cluster" in line or read_secret(own_cluster.folder)["spark.authenticate.secret"] in line
                   for line in said)  # fmt: skip


def test_rights_of_checkpoint_files_are_the_users_own(sessions: Made, own_cluster: Run) -> None:
    (key,) = OWNERS_FILES
    conf, said = sessions({"spark.master": own_cluster.master, key: "027"}, None)
    assert conf[key] == "027"
    assert [line.split(":")[0] for line in said] == [f"{key} is '027', not 077"]


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
