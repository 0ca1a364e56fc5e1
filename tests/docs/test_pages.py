"""Pages name files, commands and options that are there."""

import argparse
import re
from pathlib import Path

import pytest

from barograph.cli.main import COMMANDS, add_log_options, module_of
from barograph.engines.spark.security.driver_uses import USES

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
BASES = [ROOT, ROOT / "src" / "barograph", ROOT / "docs"]
FILE = re.compile(r"`([\w./-]+/[\w.-]+\.(?:py|scala|toml|md|json|yml))`")
COMMAND = re.compile(r"(?<![\w/.])barograph (\w+)")
SPECS = re.compile(r"\b(adaptive|traffic|mapping|migration|priority|autoscale|baselines|evaluations)\.md")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")

each = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def options(parser: argparse.ArgumentParser) -> set[str]:
    """All options of a command, those of its own commands too."""
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found = found.union(*(options(sub) for sub in action.choices.values()))
    return found


@pytest.fixture(scope="module")
def known_options() -> set[str]:
    found = {"--version", "--properties-file"}  # the latter of spark-submit
    for name in COMMANDS:
        parser = argparse.ArgumentParser()
        module_of(name).configure(parser)
        add_log_options(parser)
        found |= options(parser)
    return found


@each
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = FILE.findall(page.read_text(encoding="utf-8"))
    missing = [name for name in named if not any((base / name).exists() for base in BASES)]
    assert missing == []


@each
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    code = re.findall(r"`([^`]+)`", page.read_text(encoding="utf-8"))
    named = {name for part in code for name in COMMAND.findall(part)}
    assert named <= {*COMMANDS, "COMMAND"}


@each
def test_every_option_that_a_page_names_exists(page: Path, known_options: set[str]) -> None:
    assert set(OPTION.findall(page.read_text(encoding="utf-8"))) <= known_options


@each
def test_no_page_names_a_document_that_is_not_in_the_repository(page: Path) -> None:
    assert SPECS.findall(page.read_text(encoding="utf-8")) == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [str(p.relative_to(ROOT / "docs")) for p in ROOT.glob("docs/**/*.md")]
    assert [page for page in pages if f" {page}\n" not in navigation] == []


def test_the_page_of_the_endpoint_lists_the_verbs_that_are_served() -> None:
    page = (ROOT / "docs" / "operating" / "endpoint.md").read_text(encoding="utf-8")
    supervisor = (ROOT / "src" / "barograph" / "engines" / "spark" / "driver" / "supervisor.py").read_text("utf-8")
    block = supervisor.partition("verbs: dict[")[2].partition("\n            }")[0]
    served = {*re.findall(r'^ +"(\w+)": ', block, re.MULTILINE), USES, "priority"}
    assert {"observe", "apply"} < served and "USES:" in block
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == served
