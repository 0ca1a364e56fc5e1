"""The plug-in's own tests, which are written in Scala with JUnit and need no running Spark (jvm/tests)."""

import runpy
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.fetched import needs_fetched

from barograph.engines.spark.cluster.java import find_java, spark_jars
from barograph.engines.spark.conf import PLUGIN_JAR, WORKLOADS_JAR

ROOT = Path(__file__).parents[2]
# Spark's classes reach into these parts of Java, as Spark's own launcher allows them to.
OPENED = ("java.lang", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")


@pytest.mark.spark  # it starts a JVM that uses all cores
@pytest.mark.limit(300)  # it may have to compile the jars and the tests first
def test_the_plugin_passes_its_own_tests(tmp_path: Path) -> None:
    compiling = runpy.run_path(str(ROOT / "jvm" / "compile.py"))
    with needs_fetched():
        jars = compiling["junit_jars"]()
    classes = compiling["TEST_CLASSES"]
    compiling["compile_shipped"]()
    compiling["compile_tests"](classes, jars)
    classpath = ":".join(map(str, (classes, PLUGIN_JAR, WORKLOADS_JAR, *spark_jars(), *jars)))
    done = subprocess.run(
        [
            str(find_java().command), *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
            "-cp", classpath, "org.junit.platform.console.ConsoleLauncher", "execute", "--scan-classpath", str(classes),
            "--reports-dir", str(tmp_path), "--details", "none", "--disable-banner", "--disable-ansi-colors",
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    cases = [case for report in tmp_path.glob("TEST-*.xml") for case in ElementTree.parse(report).iter("testcase")]
    failed = {
        f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}": found.get("message") or found.get("type")
        for case in cases
        if (found := next((part for part in case if part.tag in ("failure", "error")), None)) is not None
    }
    assert failed == {}
    assert done.returncode == 0, done.stdout + done.stderr
    assert cases, done.stdout + done.stderr
