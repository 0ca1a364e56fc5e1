"""What a driver leaves that is killed before any file operation of a commit, a cut, a stateful rescale and its undo.

Every operation is a point: the checkpoint is copied before it, which is what a kill there leaves, and the query goes on
from the copy. BENCH_KILLS (4) operations, and at least one of each of commit, rescale and undo, are also real kills
(-9), each with a new driver after it; ``all``: every one, which takes about half a minute each.

JSON: ``points`` and ``points_of`` each work; ``kills``, ``kills_wanted``; ``exact``; ``wrong``: points from which the
query did not go on, or not exactly; ``driver_back_s``; ``problems``: what ended the bench before its time, with what
was found until then; ``operations``. Bars: after each the next run goes on, and every committed row is counted exactly
once; each work has points; every kill that was to be happened.
"""

import os
import sys
import tempfile
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from barograph.testing.crash_points import WORK, CrashPoint, copied_points, crash_points
from bench._figures import Bar, finish

KILLS = os.environ.get("BENCH_KILLS", "4")


def main() -> int:
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="barograph-crash-", ignore_cleanup_errors=True) as folder:
        copied = told("copied", copied_points(Path(folder) / "copied"), problems)
        wanted = chosen(copied)
        killed = told("killed", crash_points(Path(folder) / "killed", wanted), problems)
    wrong = [asdict(p) for p in (*copied, *killed) if not p.exact]
    back = sorted(p.back_s for p in killed)
    kills = sum(p.died for p in killed)
    points_of = {work: sum(p.work == work for p in copied) for work in WORK}
    found = {
        "points": len(copied), "points_of": points_of, "kills": kills, "kills_wanted": len(wanted),
        "exact": sum(p.exact for p in copied) + sum(p.exact and p.died for p in killed), "wrong": wrong,
        "driver_back_s": {"median": back[len(back) // 2] if back else None, "worst": back[-1] if back else None},
        "problems": problems, "operations": [f"{p.work}: {p.operation}" for p in copied],
    }  # fmt: skip
    return finish(found, bars_of(points_of, kills, len(wanted), len(wrong), len(problems)))


def bars_of(points_of: Mapping[str, int], kills: int, wanted: int, wrong: int, problems: int) -> list[Bar]:
    """A driver that was to be killed and came to its end shows nothing about a kill, and nothing after it was tried."""
    return [
        Bar("problems", float(problems), at_most=0.0),
        *(Bar(f"points of {work}", float(count), at_least=1.0) for work, count in points_of.items()),
        Bar("kills that happened", float(kills), at_least=float(wanted)),
        Bar("not exact", float(wrong), at_most=0.0),
    ]


def chosen(points: Sequence[CrashPoint]) -> list[tuple[str, int]]:
    """The operations before which a driver is really killed: spread over all, and in each work at least one."""
    kills = len(points) if KILLS == "all" else min(len(points), int(KILLS))
    found = {k * len(points) // max(1, kills) for k in range(kills)}
    for work in {p.work for p in points}:
        of_work = [k for k, p in enumerate(points) if p.work == work]
        if found.isdisjoint(of_work):
            found.add(of_work[len(of_work) // 2])
    return [(points[k].work, points[k].number) for k in sorted(found)]


def told(how: str, points: Iterable[CrashPoint], problems: list[str]) -> list[CrashPoint]:
    """What was found is kept whatever ends it."""
    found = []
    try:
        for point in points:
            found.append(point)
            end = "exact" if point.exact else f"WRONG: {point.why}"
            print(f"{how} {point.work} {point.number}: {point.operation}: {end}", file=sys.stderr)
    except Exception as error:  # noqa: BLE001  # a bar says that there was one
        traceback.print_exc()
        problems.append(f"{how}: {type(error).__name__}: {error}")
    return found
