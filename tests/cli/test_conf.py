"""``barograph conf``: settings in each format, and an application that runs with them outside the environment."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from barograph.cli.conf import with_seats
from barograph.cli.main import main

APPLICATION = """
import json, sys
import barograph
from pyspark import SparkConf, SparkContext
SparkContext._ensure_initialized()  # the JVM that spark-submit started
plugins = SparkConf().get("spark.plugins")
print(json.dumps([sys.executable, plugins, sys.argv[1:]]))
"""


def test_the_same_settings_in_each_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conf", "--format", "json"]) == 0
    settings = json.loads(capsys.readouterr().out)
    assert settings["spark.plugins"] == "org.apache.spark.barograph.BarographPlugin"
    assert main(["conf", "--format", "properties"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert dict(line.split(" ", 1) for line in lines) == settings
    assert main(["conf"]) == 0
    words = capsys.readouterr().out.split()
    assert dict(word.split("=", 1) for word in words[1::2]) == settings and set(words[::2]) == {"--conf"}


def test_shipped_jars_are_not_on_the_class_path_of_executors(capsys: pytest.CaptureFixture[str]) -> None:
    """On another machine, the path of this one is not there."""
    assert main(["conf", "--ship", "--workloads", "--format", "json"]) == 0
    settings = json.loads(capsys.readouterr().out)
    assert [Path(jar).name for jar in settings["spark.jars"].split(",")] == [
        "barograph-plugin.jar", "barograph-workloads.jar",
    ]  # fmt: skip
    assert not any("extraClassPath" in key for key in settings)


LOCAL_FILES = "spark.hadoop.fs.AbstractFileSystem.file.impl"


def test_processes_without_our_jar_are_not_told_to_use_a_class_of_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """YARN's application master reads Hadoop's settings, and runs before the jar is there."""
    for ship in ([], ["--ship"]):
        assert main(["conf", *ship, "--format", "json"]) == 0
        assert (LOCAL_FILES in json.loads(capsys.readouterr().out)) == (not ship)
    called: list[list[str]] = []
    monkeypatch.setattr(os, "execve", lambda _, words, __: called.append(words))
    yarn = [["--master", "yarn"], ["--master=yarn"], ["--conf", "spark.master=yarn"]]
    for words in (*yarn, ["--master", "local[8]"]):
        main(["conf", "--submit", *words, "app.py"])
        assert any(LOCAL_FILES in word for word in called[-1]) == (words not in yarn)


def test_submit_needs_an_application(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conf", "--submit"]) == 2
    assert capsys.readouterr().err == "barograph conf: --submit needs an application: write --submit app.py\n"


@pytest.mark.parametrize(
    ("words", "cores", "master"),
    [
        (["app.py"], 2, "local[8]"),
        (["--master", "local[*]", "app.py"], 2, "local[8]"),
        (["--master", "local[*]", "app.py"], 16, "local[64]"),
        (["--master", "local[3]", "app.py"], 2, "local[3]"),
        (["--master", "spark://host:7077", "app.py"], 2, "spark://host:7077"),
    ],
)
def test_seats_are_more_than_cores_where_none_are_asked_for(words: list[str], cores: int, master: str) -> None:
    found, line = with_seats(words, cores, configured=False)
    assert found[found.index("--master") + 1] == master
    assert bool(line) == (found != words)
    assert not line or f"{cores} cores would be {cores} seats" in line
    assert with_seats(found, cores, configured=False) == (found, "")


@pytest.mark.parametrize("words", [["--conf", "spark.master=yarn", "app.py"], ["--properties-file", "mine", "app.py"]])
def test_a_master_from_elsewhere_is_kept(words: list[str]) -> None:
    assert with_seats(words, 2, configured=False) == (words, "")
    assert with_seats(["app.py"], 2, configured=True) == (["app.py"], "")


@pytest.mark.spark
def test_an_application_runs_where_no_environment_is_activated(tmp_path: Path) -> None:
    application = tmp_path / "app.py"
    application.write_text(APPLICATION)
    command = [sys.executable, "-m", "barograph.cli.main", "conf", "--submit", "--master", "local[1]", str(application)]
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    done = subprocess.run(
        [*command, "--verbose", "one"], env={**kept, "PATH": "/usr/bin:/bin"}, cwd=tmp_path, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == [sys.executable, "org.apache.spark.barograph.BarographPlugin", ["--verbose", "one"]]
