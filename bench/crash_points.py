"""What a driver leaves that is killed before any file operation of a commit, a cut, a stateful rescale and its undo.

Every operation is a point: the checkpoint is copied before it, which is what a kill there leaves, and the query goes on
from the copy. BENCH_KILLS (4) operations are also real kills (-9), each with a new driver after it; ``all``: every one,
which takes about half a minute each. Bars: after each the next run goes on, and every committed row is counted exactly
once; every kill that was to be happened.
"""

import os
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from barograph.testing.crash_points import CrashPoint, copied_points, crash_points
from bench._figures import Bar, finish

KILLS = os.environ.get("BENCH_KILLS", "4")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="barograph-crash-", ignore_cleanup_errors=True) as folder:
        copied = told("copied", copied_points(Path(folder) / "copied"))
        wanted = chosen(len(copied))
        killed = told("killed", crash_points(Path(folder) / "killed", wanted))
    wrong = [asdict(p) for p in (*copied, *killed) if not p.exact]
    back = sorted(p.back_s for p in killed)
    kills = sum(p.died for p in killed)
    found = {
        "points": len(copied), "kills": kills, "kills_wanted": len(wanted),
        "exact": sum(p.exact for p in copied) + sum(p.exact and p.died for p in killed), "wrong": wrong,
        "driver_back_s": {"median": back[len(back) // 2] if back else None, "worst": back[-1] if back else None},
        "operations": [p.operation for p in copied],
    }  # fmt: skip
    return finish(found, bars_of(len(copied), kills, len(wanted), len(wrong)))


def bars_of(points: int, kills: int, wanted: int, wrong: int) -> list[Bar]:
    """A driver that was to be killed and came to its end shows nothing about a kill, and nothing after it was tried."""
    return [
        Bar("points", float(points), at_least=1.0),
        Bar("kills that happened", float(kills), at_least=float(wanted)),
        Bar("not exact", float(wrong), at_most=0.0),
    ]


def chosen(count: int) -> list[int]:
    """The operations before which a driver is really killed, spread over all."""
    kills = count if KILLS == "all" else min(count, int(KILLS))
    return sorted({1 + k * count // max(1, kills) for k in range(kills)})


def told(how: str, points: Iterable[CrashPoint]) -> list[CrashPoint]:
    found = []
    for point in points:
        found.append(point)
        print(f"{how} {point.number}: {point.operation}: {'exact' if point.exact else 'WRONG'}", file=sys.stderr)
    return found
