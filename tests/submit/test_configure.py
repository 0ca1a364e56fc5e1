"""``barograph.configure``: settings for a session that a program makes itself."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

import barograph
from barograph.engines.spark.cluster.java import java_home, pyspark_home
from barograph.engines.spark.cluster.processes import python_environment
from barograph.engines.spark.conf import PLUGIN_JAR, plugin_settings
from barograph.engines.spark.security.closed_driver import CLOSED_LOCAL
from barograph.model import BadInput
from barograph.submit import configure as configuring
from barograph.submit import hooks


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(hooks, "_said", set())
    for name in (
        "PYSPARK_GATEWAY_PORT",
        "PYSPARK_SUBMIT_ARGS",
        "SPARK_REMOTE",
        "SPARK_API_MODE",
        "SPARK_CONNECT_MODE_ENABLED",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def options_of(builder: SparkSession.Builder) -> dict[str, str]:
    return dict(builder._options)


def test_a_builder_gets_our_settings_and_the_jar_for_executors_anywhere() -> None:
    found = options_of(barograph.configure(SparkSession.builder.appName("counts").master("local[2]")))
    named = {"spark.app.name": "counts", "spark.master": "local[2]"}
    assert found == {**named, **plugin_settings(ship=True), **CLOSED_LOCAL}
    assert found["spark.jars"] == str(PLUGIN_JAR)
    assert not any("extraClassPath" in key for key in found)


def test_the_port_for_calls_from_java_is_guarded_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(gateway: object) -> None:
        pass

    monkeypatch.setattr(java_gateway, "ensure_callback_server_started", plain)
    barograph.configure(SparkSession.builder.master("local[2]"))
    guarded: Any = java_gateway.ensure_callback_server_started
    assert guarded is not plain and guarded.guards


def test_without_a_number_there_are_more_seats_than_cores(capsys: pytest.CaptureFixture[str]) -> None:
    seats = max(8, 4 * len(os.sched_getaffinity(0)))
    for builder in (SparkSession.builder.appName("counts"), SparkSession.builder.master("local[*]")):
        assert options_of(barograph.configure(builder))["spark.master"] == f"local[{seats}]"
        said = capsys.readouterr().err
        assert said.startswith(f"barograph: the master is local[{seats}], since every instance takes a seat")
        assert said.count("\n") == 1


@pytest.mark.parametrize("arguments", ["", "--master local[2] pyspark-shell", "--conf spark.master=local[2] x"])
def test_a_local_driver_is_closed_wherever_its_master_is_named(arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    assert CLOSED_LOCAL.items() <= options_of(barograph.configure(SparkSession.builder)).items()
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn x")
    monkeypatch.setenv("MASTER", "local[2]")
    assert not CLOSED_LOCAL.keys() & options_of(barograph.configure(SparkSession.builder)).keys()
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    assert CLOSED_LOCAL.items() <= options_of(barograph.configure(SparkSession.builder)).items()


def test_what_the_user_opens_stands_and_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.bindAddress 0.0.0.0\n")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.ui.enabled=true pyspark-shell")
    for _ in range(2):
        found = options_of(barograph.configure(SparkSession.builder.master("local[2]")))
        assert (found.keys() & CLOSED_LOCAL.keys(), found["spark.authenticate"]) == ({"spark.authenticate"}, "true")
    address, pages = capsys.readouterr().err.splitlines()
    assert address.startswith("barograph: spark.driver.bindAddress is '0.0.0.0', not 127.0.0.1: the driver's ports are")
    assert pages.startswith("barograph: spark.ui.enabled is 'true', not false: the driver's web pages are open to")


@pytest.mark.parametrize(
    ("name", "value"),
    [("MASTER", "yarn"), ("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell")],
)
def test_a_master_that_comes_from_elsewhere_is_kept(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert "spark.master" not in options_of(barograph.configure(SparkSession.builder.appName("counts")))


def test_a_master_of_the_defaults_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.master yarn\n")
    assert "spark.master" not in options_of(barograph.configure(SparkSession.builder.appName("counts")))


def test_settings_of_the_builder_and_of_the_defaults_file_are_kept(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.plugins their.Plugin\nspark.jars other.jar\n")
    builder = SparkSession.builder.config("spark.sql.extensions", "their.Rules").config("spark.jars", "one.jar")
    found = options_of(barograph.configure(builder))
    assert found["spark.sql.extensions"] == "their.Rules,org.apache.spark.barograph.BarographExtensions"
    assert found["spark.plugins"] == "their.Plugin,org.apache.spark.barograph.BarographPlugin"
    assert found["spark.jars"] == f"one.jar,{PLUGIN_JAR}"


def test_options_of_queries_and_of_controllers_in_the_file_hold(tmp_path: Path) -> None:
    (tmp_path / "barograph.toml").write_text('in-flight = "100ms"\ncycle = "7s"\n[cluster]\nnodes = 2\n')
    found = options_of(barograph.configure(SparkSession.builder))
    assert found["spark.barograph.inFlightMs"] == "100"
    assert found["spark.barograph.cycle"] == "7s"
    assert not any("nodes" in key for key in found)


class RunningContext:
    def __init__(self, plugins: str) -> None:
        self._plugins = plugins

    def getConf(self) -> SimpleNamespace:  # noqa: N802  # Spark's name
        return SimpleNamespace(getAll=lambda: [("spark.plugins", self._plugins)])


def test_a_session_that_runs_without_the_plug_in_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", RunningContext("their.Plugin"))
    with pytest.raises(BadInput, match=r"session runs already, without Barograph's plug-in: .* restart the notebook"):
        barograph.configure(SparkSession.builder)
    ours = RunningContext("their.Plugin, org.apache.spark.barograph.BarographPlugin")
    monkeypatch.setattr(SparkContext, "_active_spark_context", ours)
    barograph.configure(SparkSession.builder)  # a cell that is run again


def started_by_spark_submit(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], has_jar: bool) -> None:
    """As in a script's process: the JVM is there, and pyspark connects to it at its first use."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1234")
    monkeypatch.setattr(SparkContext, "_ensure_initialized", lambda: setattr(SparkContext, "_jvm", object()))
    monkeypatch.setattr(configuring, "_is_known", lambda _: has_jar)
    monkeypatch.setattr(configuring, "SparkConf", lambda: SimpleNamespace(getAll=lambda: list(settings.items())))


def test_a_script_of_plain_spark_submit_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    started_by_spark_submit(monkeypatch, {}, has_jar=False)
    with pytest.raises(BadInput, match=r"spark-submit has started Spark's JVM .* 'barograph submit', with 'python'"):
        barograph.configure(SparkSession.builder)


def test_settings_of_spark_submit_with_our_jar_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    started_by_spark_submit(monkeypatch, {"spark.master": "yarn", "spark.plugins": "their.Plugin"}, has_jar=True)
    found = options_of(barograph.configure(SparkSession.builder.appName("counts")))
    assert "spark.master" not in found
    assert found["spark.plugins"] == "their.Plugin,org.apache.spark.barograph.BarographPlugin"


def test_settings_that_are_ours_are_no_wish_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the settings of ``barograph conf``, or when a cell of a notebook is run again."""
    started_by_spark_submit(monkeypatch, {"spark.master": "yarn", **plugin_settings(ship=True)}, has_jar=True)
    found = options_of(barograph.configure(SparkSession.builder.appName("counts")))
    assert "spark.barograph.allowlistCheck" not in found
    assert found["spark.plugins"] == "org.apache.spark.barograph.BarographPlugin"


@pytest.mark.spark
def test_spark_submit_itself_shows_the_sentence_and_no_traceback_of_java(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    lines = ("import barograph", "from pyspark.sql import SparkSession", "barograph.configure(SparkSession.builder)")
    script.write_text("\n".join(lines))
    environment = {**python_environment(), "JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable}
    program = str(pyspark_home() / "bin" / "spark-submit")
    done = subprocess.run(
        [program, "--master", "local[1]", str(script)], env=environment, cwd=tmp_path, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    # spark-submit passes on what the script writes to its standard error on its own standard output.
    assert done.stdout.startswith("barograph.configure: spark-submit has started Spark's JVM already"), done.stderr
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("from_file", [True, False])
def test_a_driver_elsewhere_is_refused(from_file: bool, tmp_path: Path) -> None:
    builder = SparkSession.builder
    if from_file:
        (tmp_path / "spark-defaults.conf").write_text("spark.submit.deployMode cluster\n")
    else:
        builder = builder.config("spark.submit.deployMode", "cluster")
    with pytest.raises(BadInput, match=r"spark\.submit\.deployMode cluster is not supported"):
        barograph.configure(builder)


def test_a_hook_that_does_not_get_in_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        builder = SparkSession.builder.master("local[2]").config("spark.shuffle.manager.incremental", "their.Manager")
        barograph.configure(builder)
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(
        "barograph: a part of Barograph did not get in: spark.shuffle.manager.incremental is 'their.Manager', not "
    )


def test_jars_that_would_hide_ours_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars one.jar pyspark-shell")
    with pytest.raises(BadInput, match=r"PYSPARK_SUBMIT_ARGS has --jars.*\.config\('spark.jars'"):
        barograph.configure(SparkSession.builder)


@pytest.mark.parametrize("variable", ["SPARK_REMOTE", "SPARK_API_MODE"])
def test_spark_connect_is_refused(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"Spark Connect is not supported \(spark.remote is set\)"):
        barograph.configure(SparkSession.builder.remote("sc://localhost"))
    monkeypatch.setenv(variable, "connect")
    with pytest.raises(BadInput, match="Spark Connect is not supported"):
        barograph.configure(SparkSession.builder)
