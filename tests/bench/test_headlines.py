"""The table of the papers' headlines, and when the bench fails: with papers made for the test."""

import importlib
import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bench.headlines import Judged, as_dict, exit_code, judged, papers, table

from barograph.engines.sim import Result
from barograph.experiments.headlines.headline import Case, Headline, Paper, holds, within
from bench import headlines as bench

TINY = """
name = "tiny"
title = "one operator"
duration_s = 10
nodes = [{name = "n", cpu_pct = 200}]
[[topologies]]
name = "t"
operators = [{name = "s", parallelism = 1, load = "constant 50", cost_ms = 1}]
"""


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return str(path)


def paper(tiny: str, because: str = "", stated: float = 500.0) -> Paper:
    """A paper whose one stated number is the rows that scenario tiny completes."""

    def judge(found: Mapping[str, Result]) -> Sequence[Headline]:
        rows = found["first"].completed_rows
        return [
            within("rows completed", stated, rows, off=1.0, because=because),
            holds("same result by any policy", "yes", "yes", rows == found["second"].completed_rows),
        ]

    return Paper("tiny", "a fake paper", (Case("first", tiny, "none"), Case("second", tiny, "even")), judge)


def of(*some: Paper) -> list[Judged]:
    with ThreadPoolExecutor(1) as pool:
        return judged(some, pool)


def test_all_is_met(tiny: str) -> None:
    found = of(paper(tiny))
    assert exit_code(found) == 0
    report = as_dict(found, 1.25)
    assert json.loads(json.dumps(report)) == report
    assert (report["met"], report["missed"], report["not_excused"], report["broken"]) == (2, 0, [], [])
    assert report["wall_s"] == 1.2
    (only,) = found
    assert list(only.seconds) == ["first", "second"]
    heading, head, *rows = table(only)
    assert heading.startswith("tiny: a fake paper (2 runs, ")
    assert head.split() == ["what", "the", "paper", "ours", "verdict"]
    assert [line.split()[-1] for line in rows] == ["met", "met"]


def test_a_miss_with_a_cause_is_reported_and_passes(tiny: str) -> None:
    found = of(paper(tiny, "the fake paper counts " + "and counts " * 20 + "otherwise", 900.0))
    assert exit_code(found) == 0
    lines = table(found[0])
    at = next(i for i, line in enumerate(lines) if line.endswith("missed"))
    assert lines[at].split() == ["rows", "completed", "900", "500.00", "missed"]
    assert lines[at + 1].startswith("      because the fake paper counts and counts")
    assert lines[at + 2].startswith("      ")
    assert all(len(line) <= 132 for line in lines)
    report = as_dict(found, 0.0)
    assert (report["met"], report["missed"], report["not_excused"]) == (1, 1, [])


def test_a_miss_without_a_cause_fails(tiny: str) -> None:
    found = of(paper(tiny, stated=900.0))
    assert exit_code(found) == 1
    assert "      no cause is given" in table(found[0])
    assert as_dict(found, 0.0)["not_excused"] == ["tiny: rows completed"]


def test_a_run_that_breaks_fails_and_the_other_papers_still_count(tiny: str) -> None:
    bad = Paper("bad", "a paper of a scenario that is not", (Case("gone", "nowhere", "none"),), lambda _: [])
    found = of(bad, paper(tiny))
    assert exit_code(found) == 1
    assert found[0].broken[0].startswith("bad, gone: BadInput: there is no scenario 'nowhere'")
    assert table(found[0])[-1].startswith("  broken: bad, gone: ")
    assert found[1].headlines


def test_a_judge_that_breaks_or_returns_nothing_fails(tiny: str) -> None:
    cases = (Case("first", tiny, "none"),)
    trips = Paper("trips", "", cases, lambda found: [holds("", "", "", bool(found["second"]))])
    silent = Paper("silent", "", cases, lambda _: [])
    found = of(trips, silent)
    assert [exit_code([each]) for each in found] == [1, 1]
    assert found[0].broken == ["trips, its judge: KeyError: 'second'"]
    assert found[1].broken == ["silent has no headline"]


def test_cases_that_have_not_begun_are_not_run_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    interrupted = threading.Event()

    def timed(case: Case) -> tuple[None, float]:
        begun.append(case.key)
        if case.key != "0":
            interrupted.wait(60)
        return None, 0.0

    def say(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "timed", timed)
    monkeypatch.setattr(bench, "say", say)
    cases = tuple(Case(str(k), "nowhere", "none") for k in range(9))
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(KeyboardInterrupt):
            judged([Paper("long", "", cases, lambda _: [])], pool)
        interrupted.set()
    assert begun in (["0"], ["0", "1"])


def test_no_paper_at_all_fails() -> None:
    assert exit_code(of()) == 1


def test_papers_are_the_modules_that_export_one(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "fake_papers"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "tools.py").write_text("PAPER = 'a wasp nest'\n")
    (folder / "tiny.py").write_text(
        "from barograph.experiments.headlines.headline import Case, Paper, holds\n"
        f"case = Case('only', {tiny!r}, 'none')\n"
        "PAPER = Paper('tiny', 'of a file', (case,), lambda found: [holds('it runs', 'yes', 'yes', 'only' in found)])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.import_module("fake_papers")
    assert [p.title for p in papers(package)] == ["of a file"]
    monkeypatch.setattr(bench, "headlines", package)
    assert bench.main() == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["papers"][0]["headlines"][0]["verdict"] == "met"
    assert "1 headlines met, 0 missed" in shown.err
