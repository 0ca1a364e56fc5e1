"""What is compiled, into which jar, and when again."""

import os
import re
import runpy
import zipfile
from pathlib import Path
from typing import Any

import pytest

from barograph.cli.main import main
from barograph.engines.spark.conf import PLUGIN_JAR, WORKLOADS_JAR, plugin_settings

ROOT = Path(__file__).parents[2]
LATER = 4e9  # a date after that of the compile script


@pytest.fixture(scope="module")
def compiling() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "jvm" / "compile.py"))


def dated(file: Path, date: float) -> Path:
    file.touch()
    os.utime(file, (date, date))
    return file


def test_the_plugin_has_neither_its_tests_nor_workloads(compiling: dict[str, Any]) -> None:
    sources = {str(file.relative_to(ROOT / "jvm")) for file in compiling["plugin_sources"]()}
    assert "plugin/BarographPlugin.scala" in sources
    assert not [name for name in sources if name.startswith(("tests/", "testing/", "source/"))]


def classes(jar: Path) -> set[str]:
    with zipfile.ZipFile(jar) as opened:
        return {name.removeprefix("org/apache/spark/barograph/").removesuffix(".class") for name in opened.namelist()}


def test_every_class_is_in_one_jar() -> None:
    if not (PLUGIN_JAR.exists() and WORKLOADS_JAR.exists()):
        pytest.skip("the jars are not built")
    plugin, workloads = classes(PLUGIN_JAR), classes(WORKLOADS_JAR)
    assert {"BarographPlugin", "BarographExtensions", "MeteredShuffleManager", "plugin/Bridge"} <= plugin
    assert {"ReplaySource", "source/TimedSink", "source/BusyWork"} <= workloads
    assert not plugin & workloads


def test_spark_settings_name_the_workloads_jar_only_for_runs(capsys: pytest.CaptureFixture[str]) -> None:
    if not (PLUGIN_JAR.exists() and WORKLOADS_JAR.exists()):
        pytest.skip("the jars are not built")
    assert WORKLOADS_JAR.name not in str(plugin_settings())
    assert main(["conf"]) == 0
    assert WORKLOADS_JAR.name not in capsys.readouterr().out
    assert main(["conf", "--workloads"]) == 0
    assert WORKLOADS_JAR.name in capsys.readouterr().out


def test_the_wheel_does_not_carry_what_only_tests_call(compiling: dict[str, Any]) -> None:
    assert not compiling["TESTING_JAR"].is_relative_to(ROOT / "src")


def test_a_target_is_current_if_nothing_is_newer(compiling: dict[str, Any], tmp_path: Path) -> None:
    is_current = compiling["is_current"]
    target = tmp_path / "target.jar"
    source = dated(tmp_path / "A.scala", LATER)
    assert not is_current(target, [source])
    dated(target, LATER)
    assert is_current(target, [source])
    dated(source, LATER + 1)
    assert not is_current(target, [source])
    dated(target, 1.0)  # older than the compile script
    assert not is_current(target, [])


def test_no_test_code_is_in_a_shipped_jar() -> None:
    """Any query can call a public method of a class on the class path, by Spark SQL's reflect()."""
    if not (PLUGIN_JAR.exists() and WORKLOADS_JAR.exists()):
        pytest.skip("the jars are not built")
    names = {file.stem for file in (ROOT / "jvm" / "testing").glob("*.scala")}
    names |= {file.stem for file in (ROOT / "jvm" / "tests").rglob("*.scala")}
    assert {"Dial", "DelayedOrders", "Crowd", "Stranger", "CreditTest"} <= names
    shipped = classes(PLUGIN_JAR) | classes(WORKLOADS_JAR)
    assert {name for name in shipped if "testing" in name.split("/") or re.split(r"[/$]", name)[-1] in names} == set()


def test_no_setting_of_a_shipped_object_can_be_changed_by_its_name() -> None:
    """A public variable of an object has a setter that everything can call; tests must find another way."""
    if not (PLUGIN_JAR.exists() and WORKLOADS_JAR.exists()):
        pytest.skip("the jars are not built")
    found = set()
    for file in sorted((ROOT / "jvm").rglob("*.scala")):
        if not {"tests", "testing"} & set(file.relative_to(ROOT / "jvm").parts):
            # Inside an object, two spaces deep, and not private to it.
            for block in re.findall(r"^object \w+.*?^}", file.read_text(), re.MULTILINE | re.DOTALL):
                found |= {
                    (file.name, name)
                    for words, name in re.findall(r"^  ((?:@?[\w\[\]]+ )*)var (\w+)", block, re.MULTILINE)
                    if not re.search(r"private(?!\[)", words)
                }
    assert found <= {("ExecutorHands.scala", "plugin")}  # set by Spark's call, and takes no text or number
