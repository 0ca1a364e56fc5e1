"""The call of spark-submit: what a user gives is kept, ours is added, what cannot work is refused in one sentence."""

import json
import os
import shlex
import sys
import zipfile
from pathlib import Path

import pytest

from barograph.cli.submission.call import Option, SubmitCall, run_there, with_own_folder
from barograph.engines.spark.conf import PLUGIN_JAR, WORKLOADS_JAR
from barograph.model import BadInput
from barograph.submit import launcher
from barograph.submit.launcher import SubmitOptions


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "app.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return "app.py"


def made(script: str, *options: Option, workloads: bool = False, **environment: str) -> SubmitCall:
    return SubmitCall.of(options, [script, "--act", "one"], workloads, {"SPARK_CONF_DIR": ".", **environment})


def test_the_command_has_the_script_behind_our_launcher(script: str) -> None:
    launch = made(script, ("--master", "local[2]"), ("--executor-cores", "4"), ("--verbose", None))
    submit = SubmitOptions("advise", "", "adaptive")
    command = launch.command(submit)
    assert Path(command[0]).name == "spark-submit"
    assert command[1:10] == [
        "--executor-cores", "4", "--verbose", "--master", "local[2]", "--name", "app.py", "--jars", str(PLUGIN_JAR),
    ]  # fmt: skip
    assert command[10] == launcher.__file__
    assert SubmitOptions(**json.loads(command[11])) == submit
    assert command[12:] == ["app.py", "--act", "one"]


def test_jars_name_and_master_of_each_source_are_kept(script: str, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.jars default.jar\nspark.app.name by-default\n")
    found = made(script)
    assert (found.jars, found.name, found.master) == (f"default.jar,{PLUGIN_JAR}", "by-default", "")
    (tmp_path / "own.conf").write_text("spark.jars=own.jar\nspark.master=spark://there:7077\n")
    found = made(script, ("--properties-file", "own.conf"))
    assert (found.jars, found.name, found.master) == (f"own.jar,{PLUGIN_JAR}", "app.py", "spark://there:7077")
    found = made(script, ("--properties-file", "own.conf"), ("--load-spark-defaults", None))
    assert (found.jars, found.name) == (f"own.jar,{PLUGIN_JAR}", "by-default")
    found = made(script, ("--conf", "spark.jars=conf.jar"), ("--conf", "spark.app.name=a=b"), workloads=True)
    assert (found.jars, found.name) == (f"conf.jar,{PLUGIN_JAR},{WORKLOADS_JAR}", "a=b")
    found = made(script, ("--conf", "spark.jars=conf.jar"), ("--jars", "word.jar"), ("--name", "mine"))
    assert (found.jars, found.name) == (f"word.jar,{PLUGIN_JAR}", "mine")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([("--deploy-mode", "cluster")], r"--deploy-mode cluster is not supported: .*leave it out"),
        ([("--conf", "spark.submit.deployMode=cluster")], r"--deploy-mode cluster is not supported"),
        ([("--remote", "sc://there")], r"Spark Connect is not supported \(spark.remote is set\)"),
        ([("--conf", "spark.api.mode=connect")], r"Spark Connect is not supported \(spark.api.mode=connect is set\)"),
        ([("--class", "org.app.Main")], r"--class names the main class of a jar, and .*app.py is none: leave it out"),
        ([("--conf", "spark.jars")], r"--conf needs KEY=VALUE, not 'spark.jars'"),
        ([("--properties-file", "none.conf")], r"none.conf cannot be read: No such file"),
    ],
)
def test_what_cannot_be_run_is_refused(script: str, options: list[Option], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        made(script, *options)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none.jar", "there is no file none.jar: name a program on this machine"),
        ("app.sh", r"app.sh does not end with .py or .jar"),
        ("none.py", "there is no file none.py: name a program on this machine"),
        ("hdfs://there/app.py", "there is no file hdfs://there/app.py"),
    ],
)
def test_another_application_than_a_script_here_is_refused(script: str, name: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        made(name)
    assert made(script)


def test_the_driver_runs_by_our_python_and_executors_elsewhere_by_their_own(script: str) -> None:
    here = made(script, ("--master", "local[2]")).environment({"PATH": "/bin"})
    assert here["PYSPARK_DRIVER_PYTHON"] == here["PYSPARK_PYTHON"] == sys.executable
    there = made(script, ("--master", "yarn")).environment({"SPARK_HOME": "/opt/spark"})
    assert there["SPARK_CONF_DIR"] == "/opt/spark/conf"
    assert there["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert "PYSPARK_PYTHON" not in there
    chosen = made(script, ("--master", "local[2]")).environment({"PYSPARK_PYTHON": "theirs"})
    assert chosen["PYSPARK_PYTHON"] == "theirs"


def test_what_the_jvm_keeps_on_disk_is_in_a_folder_of_its_own() -> None:
    """Java's option, not the mask: files that the program itself writes have the rights that its user wants."""
    own = with_own_folder({"PATH": "/bin"}, Path("/state/a folder"))
    assert own == {"PATH": "/bin", "SPARK_SUBMIT_OPTS": '"-Djava.io.tmpdir=/state/a folder"'}
    own = with_own_folder({"SPARK_SUBMIT_OPTS": "-Dx=y"}, Path("/own"))
    assert own["SPARK_SUBMIT_OPTS"] == '"-Djava.io.tmpdir=/own" -Dx=y', "the user's comes last, and wins"


def test_the_folder_is_there_and_private_when_the_program_begins(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Path, int]] = []

    def began(_: str, __: list[str], environment: dict[str, str]) -> None:
        (option,) = shlex.split(environment["SPARK_SUBMIT_OPTS"])
        folder = Path(option.removeprefix("-Djava.io.tmpdir="))
        seen.append((folder, folder.stat().st_mode & 0o777))

    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    monkeypatch.setattr(os, "execve", began)
    run_there(made(script, ("--master", "local[2]")), SubmitOptions("advise", "", "adaptive"), None)
    ((folder, rights),) = seen
    assert rights == 0o700
    assert not folder.exists(), "where spark-submit cannot be run, too"


def test_a_jar_is_run_by_its_main_class(tmp_path: Path) -> None:
    jar = tmp_path / "app.jar"
    with zipfile.ZipFile(jar, "w") as opened:
        opened.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\nMain-Class: org.app.Own\r\n")
    named = SubmitCall.of([("--class", "org.app.Main"), ("--master", "local[2]")], [str(jar), "a"])
    assert (named.main_class, named.jars, named.name) == ("org.app.Main", f"{jar},{PLUGIN_JAR}", "app.jar")
    command = named.command(SubmitOptions("advise", "", "adaptive"))
    assert "--class" not in command
    assert '"main_class": "org.app.Main"' in command[-3]
    assert SubmitCall.of([], [str(jar)]).main_class == "org.app.Own"
    with zipfile.ZipFile(jar, "w") as opened:
        opened.writestr("Main.class", "")
    with pytest.raises(BadInput, match=r"app.jar does not say which class is its main one: add --class NAME"):
        SubmitCall.of([], [str(jar)])
