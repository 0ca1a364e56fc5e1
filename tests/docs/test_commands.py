"""Every command that the README and the examples print is run here exactly as printed; of what all pages print, targets
of make, benches and choices of tests are known."""

import ast
import os
import pkgutil
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(barograph [a-z]+ [^`]+)`")
LOOKING = re.compile(r"`(barograph (?:status|decisions))`")  # without arguments, while something runs
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b")


def commands_of(text: str) -> list[str]:
    """Lines that begin with a command, with their continuations, without comments."""
    joined = re.sub(r"\\\\?\n\s*", "", text)
    lines = [line.partition("#")[0].strip() for line in joined.splitlines()]
    return [line for line in lines if line.startswith(("barograph ", "make "))]


def in_readme() -> list[str]:
    """Commands in blocks, and those in sentences that have arguments and no placeholder, in their order."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = [(m.start(), command) for m in FENCED.finditer(text) for command in commands_of(m[1])]
    found += [(m.start(), m[1]) for m in INLINE.finditer(text) if not PLACEHOLDER.search(m[1])]
    return [command for _, command in sorted(found, key=lambda one: one[0])]


def in_examples() -> list[str]:
    docs = [ast.get_docstring(ast.parse(path.read_text()), clean=False) for path in sorted(ROOT.glob("examples/*.py"))]
    return [command for doc in docs for command in commands_of(doc or "")]


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
INLINE_CODE = re.compile(r"`([^`\n]+)`")


def on_pages(beginning: str) -> list[str]:
    """Commands that begin so, in blocks and in sentences of all pages, without comments, each once."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        inline = INLINE_CODE.findall(FENCED.sub("", text))
        lines = [line.partition("#")[0] for block in FENCED.findall(text) for line in block.splitlines()]
        found += [c.strip() for c in (*inline, *lines) if c.startswith(beginning)]
    return list(dict.fromkeys(found))


BENCHES = {m.name for m in pkgutil.iter_modules([str(ROOT / "bench")]) if not m.name.startswith("_")}
COMMANDS = [c for c in dict.fromkeys([*in_readme(), *in_examples()]) if c.startswith("barograph ")]
ENDLESS = [c for c in COMMANDS if "examples/" in c]
SHORT = [c for c in COMMANDS if c.endswith("--help")]
RUNS = [c for c in COMMANDS if c not in ENDLESS and c not in SHORT]


def shell(command: str, folder: Path) -> "subprocess.Popen[bytes]":
    """As a user types it, in the checkout's folder; but with a working folder of its own."""
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with (folder / "out").open("wb") as out:
        return subprocess.Popen(
            ["bash", "-c", command], cwd=folder, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "PATH": path},
        )  # fmt: skip


def test_there_are_commands_of_each_kind() -> None:
    assert any(c.startswith("barograph submit ") for c in ENDLESS)
    assert any(c.startswith("barograph run wordcount --policy adaptive") for c in RUNS)
    assert [c for c in RUNS if c.startswith(("barograph history", "barograph replay"))]
    assert SHORT


@pytest.mark.parametrize("command", on_pages("make "))
def test_targets_of_make_exist(command: str) -> None:
    done = subprocess.run([*shlex.split(command), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    only = re.search(r"ONLY=(\S+)", command)
    assert only is None or only[1].replace("-", "_") in {"name", *BENCHES}, f"there is no bench {only[1]}"


@pytest.mark.parametrize("command", [*on_pages("pytest "), *on_pages(".venv/bin/pytest ")])
def test_printed_choices_of_tests_choose_some(command: str) -> None:
    _, *words = shlex.split(command)
    if not any(word.startswith("tests/") for word in words):
        words.append("tests/engines/spark/test_hands.py")  # all files take long
    program = [sys.executable, "-m", "pytest", *words, "--collect-only", "--quiet"]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "::test_" in done.stdout


def test_there_are_such_commands_on_the_pages() -> None:
    targets = {shlex.split(command)[1] for command in on_pages("make ")}
    assert targets >= {"check", "test", "test-fast", "test-all", "demo", "bench", "docs", "setup"}
    assert len([command for command in on_pages("make bench ") if "ONLY=" in command]) > 5


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_ends_with_a_table_and_a_chart() -> None:
    """``make test``, the other command of the README's first part, runs tests such as this one."""
    done = subprocess.run(["make", "demo"], cwd=ROOT, capture_output=True, text=True, timeout=1700, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    *table, chart = done.stdout.splitlines()[-4:]
    assert [line.split()[0] for line in table[-2:]] == ["adaptive", "fixed-equal"], done.stdout[-2000:]
    assert Path(chart.removeprefix("the chart is in ")).is_file()


@pytest.mark.parametrize("command", SHORT)
def test_help_is_there(command: str, tmp_path: Path) -> None:
    program = shell(command, tmp_path)
    assert program.wait(60) == 0, (tmp_path / "out").read_text()


@pytest.mark.spark
@pytest.mark.slow
def test_runs_of_the_readme_end_well(tmp_path: Path) -> None:
    """In their order: a history is read after the run that writes it."""
    for command in RUNS:
        program = shell(command, tmp_path)
        assert program.wait(900) == 0, f"{command}\n{(tmp_path / 'out').read_text()[-4000:]}"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("command", ENDLESS)
def test_examples_print_their_counts(command: str, tmp_path: Path) -> None:
    program = shell(command, tmp_path)
    looks = dict.fromkeys(LOOKING.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    assert len(looks) == 2
    try:
        deadline = time.monotonic() + 900
        while "Batch: 1" not in (said := (tmp_path / "out").read_text()):
            assert program.poll() is None, f"{command}\n{said[-4000:]}"
            assert time.monotonic() < deadline, f"{command}\n{said[-4000:]}"
            time.sleep(0.5)
        for look in looks if command.startswith("barograph submit ") else ["barograph status"]:
            (beside := tmp_path / look.replace(" ", "-")).mkdir()
            assert shell(look, beside).wait(120) == 0, (beside / "out").read_text()
    finally:
        os.killpg(program.pid, signal.SIGTERM)
        try:
            program.wait(60)
        finally:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
