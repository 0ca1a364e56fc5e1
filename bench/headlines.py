"""Every result that the five papers state, beside our result of the same policy and set-up: met, or missed and why.

Papers are the files of ``barograph.experiments.headlines`` that export PAPER; their runs share two processes, or
BENCH_PROCESSES. JSON on stdout: ``papers``, each with ``name``, ``title``, ``cases`` (key -> seconds it took) and
``headlines`` (``what``, ``stated``, ``ours``, ``verdict``, ``because``); ``not_excused``: headlines missed without a
cause; ``broken``: runs that failed and papers that could not be judged; ``wall_s``. The table on stderr has the same.
Fails when a headline is missed without a cause, when a run breaks, or when there is no paper.
"""

import importlib
import json
import os
import pkgutil
import sys
import textwrap
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import zip_longest
from types import ModuleType

from barograph.engines.sim import Result
from barograph.experiments import headlines
from barograph.experiments.headlines.headline import Case, Headline, Paper, run_case
from bench._figures import say

PROCESSES = int(os.environ.get("BENCH_PROCESSES", "2"))
COLUMNS = {"what": 44, "the paper": 28, "ours": 44, "verdict": 7}


@dataclass
class Judged:
    """A paper, how long each of its cases took, and its results. broken: one sentence for each failure."""

    paper: Paper
    seconds: dict[str, float] = field(default_factory=dict)
    headlines: Sequence[Headline] = ()
    broken: list[str] = field(default_factory=list)

    @property
    def not_excused(self) -> list[str]:
        return [f"{self.paper.name}: {h.what}" for h in self.headlines if not h.excused]


def main() -> int:
    started = time.perf_counter()
    with ProcessPoolExecutor(PROCESSES) as pool:
        found = judged(papers(headlines), pool)
    wall_s = time.perf_counter() - started
    for each in found:
        say("\n" + "\n".join(table(each)))
    report = as_dict(found, wall_s)
    say(f"\n{report['met']} headlines met, {report['missed']} missed, in {wall_s:.0f} s on {PROCESSES} processes")
    print(json.dumps(report, indent=1))
    return exit_code(found)


def papers(package: ModuleType) -> list[Paper]:
    """What the modules of a package export as PAPER, by the modules' names."""
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__))
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return [m.PAPER for m in modules if isinstance(getattr(m, "PAPER", None), Paper)]


def judged(some: Sequence[Paper], pool: Executor) -> list[Judged]:
    """All cases of all papers in the pool, then every paper's judge in this process. After an interrupt,
    cases that have not begun are not run."""
    started = time.perf_counter()
    found = [Judged(paper) for paper in some]
    tasks: dict[Future[tuple[Result, float]], tuple[int, Case]] = {}
    for number, paper in enumerate(some):
        for case in paper.cases:
            tasks[pool.submit(timed, case)] = (number, case)
    results: list[dict[str, Result]] = [{} for _ in some]
    try:
        for task in as_completed(tasks):
            number, case = tasks[task]
            name = f"{some[number].name}, {case.key}"
            error = task.exception()
            if error is not None:
                found[number].broken.append(f"{name}: {type(error).__name__}: {error}")
                say(f"{name} broke: {error}")
                continue
            results[number][case.key], took_s = task.result()
            found[number].seconds[case.key] = took_s
            say(f"{name}: {took_s:.1f} s, {time.perf_counter() - started:.0f} s since the start")
    finally:
        for task in tasks:
            task.cancel()
    for each, mine in zip(found, results, strict=True):
        judge(each, mine)
    return found


def timed(case: Case) -> tuple[Result, float]:
    started = time.perf_counter()
    return run_case(case), time.perf_counter() - started


def judge(each: Judged, results: dict[str, Result]) -> None:
    """A paper with a failed run is not judged: its judge needs all runs."""
    each.seconds = {c.key: each.seconds[c.key] for c in each.paper.cases if c.key in each.seconds}
    if each.broken:
        return
    try:
        each.headlines = tuple(each.paper.judge(results))
    except Exception as error:  # noqa: BLE001  # a judge that fails must not stop the other papers
        each.broken.append(f"{each.paper.name}, its judge: {type(error).__name__}: {error}")
        return
    if not each.headlines:
        each.broken.append(f"{each.paper.name} has no headline")


def exit_code(found: Sequence[Judged]) -> int:
    return 0 if found and not any(each.broken or each.not_excused for each in found) else 1


def as_dict(found: Sequence[Judged], wall_s: float) -> dict[str, object]:
    every = [h for each in found for h in each.headlines]
    return {
        "processes": PROCESSES,
        "papers": [
            {
                "name": each.paper.name,
                "title": each.paper.title,
                "cases": {key: round(seconds, 2) for key, seconds in each.seconds.items()},
                "headlines": [
                    {"what": h.what, "stated": h.stated, "ours": h.ours, "verdict": verdict(h), "because": h.because}
                    for h in each.headlines
                ],
            }
            for each in found
        ],
        "met": sum(h.met for h in every),
        "missed": sum(not h.met for h in every),
        "not_excused": [name for each in found for name in each.not_excused],
        "broken": [sentence for each in found for sentence in each.broken],
        "wall_s": round(wall_s, 1),
    }


def verdict(headline: Headline) -> str:
    return "met" if headline.met else "missed"


def table(each: Judged) -> list[str]:
    lines = [f"{each.paper.name}: {each.paper.title} ({len(each.seconds)} runs, {sum(each.seconds.values()):.0f} s)"]
    if each.headlines:
        lines += row(*COLUMNS)
    for h in each.headlines:
        lines += row(h.what, h.stated, h.ours, verdict(h))
        if not h.met:
            cause = f"because {h.because}" if h.because else "no cause is given"
            lines += textwrap.wrap(cause, 116, initial_indent="      ", subsequent_indent="      ")
    return lines + [f"  broken: {sentence}" for sentence in each.broken]


def row(*texts: str) -> list[str]:
    """One row of the table; texts longer than their column are wrapped."""
    cells = [textwrap.wrap(text, width) for text, width in zip(texts, COLUMNS.values(), strict=True)]
    widths = list(COLUMNS.values())
    return [
        "  " + "  ".join(f"{part:<{width}}" for part, width in zip(parts, widths, strict=True)).rstrip()
        for parts in zip_longest(*cells, fillvalue="")
    ]


if __name__ == "__main__":
    sys.exit(main())
