"""A folder of jvm/ is a package: its files say so, and class names that Python uses exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASE = "org.apache.spark.barograph"
# Users' configuration files and programs name these classes, so they are directly in BASE and never move.
PUBLIC = frozenset(
    {
        "plugin/BarographPlugin.scala",
        "planner/BarographExtensions.scala",
        "shuffle/MeteredShuffleManager.scala",
        "source/ReplaySource.scala",
        "internals/QuickLocalFs.scala",
        "internals/FencedCheckpointFiles.scala",
    }
)
# Calls that only code in one of Spark's own packages may make.
INSIDE_SPARK = {
    "internals/SparkInternals.scala": {
        f"{BASE}.internals",
        "org.apache.spark.sql.barograph",
        "org.apache.spark.shuffle.streaming.barograph",
    },
    "testing/Submission.scala": {"org.apache.spark.deploy.barograph"},
}
SOURCES = {str(file.relative_to(ROOT / "jvm")): file for file in sorted((ROOT / "jvm").rglob("*.scala"))}
TOP_LEVEL = re.compile(r"^(?:[a-z]+(?:\[\w+\])? )*(?:class|object|trait) (\w+)", re.MULTILINE)
NAMED = re.compile(r"org\.apache\.spark\.barograph((?:\.[a-z]\w*)*)\.([A-Z]\w*)")


def packages(text: str) -> set[str]:
    return set(re.findall(r"^package ([\w.]+)", text, re.MULTILINE))


def expected(name: str) -> set[str]:
    if name in PUBLIC:
        return {BASE}
    # A test is in the package that it tests.
    return INSIDE_SPARK.get(name, {f"{BASE}.{name.removeprefix('tests/').split('/')[0]}"})


@pytest.mark.parametrize("name", SOURCES)
def test_a_file_is_in_the_package_of_its_folder(name: str) -> None:
    assert packages(SOURCES[name].read_text()) == expected(name)


def test_public_classes_exist() -> None:
    assert set(SOURCES) >= PUBLIC
    for name in PUBLIC:
        assert Path(name).stem in TOP_LEVEL.findall(SOURCES[name].read_text())


def test_every_class_that_is_named_outside_exists() -> None:
    known = {
        (package.removeprefix(BASE), found)
        for file in SOURCES.values()
        for package in packages(file.read_text())
        for found in TOP_LEVEL.findall(file.read_text())
    }
    folders = [ROOT / name for name in ("src", "tests", "bench", "examples", "docs")]
    files = [file for folder in folders for kind in ("*.py", "*.md") for file in folder.rglob(kind)]
    named = {(match, str(file)) for file in files for match in NAMED.findall(file.read_text())}
    assert len(named) > 10
    assert {(match, file) for match, file in named if match not in known} == set()


@pytest.mark.parametrize("name", SOURCES)
def test_lines_have_at_most_120_columns(name: str) -> None:
    assert [line for line in SOURCES[name].read_text().splitlines() if len(line) > 120] == []
