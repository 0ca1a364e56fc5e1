"""Kills a driver before every file operation of a commit, a cut, a stateful rescale and its undo.

Bar: after each the next driver goes on, and every committed row is counted exactly once.
"""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from barograph.testing.crash_points import crash_points

MOST = 500  # there are fewer


def main() -> int:
    points = []
    with tempfile.TemporaryDirectory(prefix="barograph-crash-", ignore_cleanup_errors=True) as folder:
        for point in crash_points(Path(folder), range(1, MOST)):
            points.append(point)
            print(f"{point.number}: {point.operation}: {'exact' if point.exact else 'WRONG'}", file=sys.stderr)
    killed = [p for p in points if p.died]
    wrong = [asdict(p) for p in points if not p.exact]
    back = sorted(p.back_s for p in killed)
    found = {
        "points": len(killed), "exact": sum(p.exact for p in killed), "wrong": wrong,
        "driver_back_s": {"median": back[len(back) // 2] if back else None, "worst": back[-1] if back else None},
        "operations": [p.operation for p in killed],
    }  # fmt: skip
    print(json.dumps(found, indent=2))
    return 0 if killed and not wrong and not points[-1].died else 1
