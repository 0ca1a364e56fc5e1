"""A whole ``barograph run wordcount`` as a user starts it, and what its report says."""

import json
import subprocess
import sys
from typing import Any

Report = dict[str, Any]


def whole_run(*options: str, timeout_s: float = 400.0) -> tuple[Report | None, str]:
    """The report, or None and the end of what it said instead."""
    order = [sys.executable, "-m", "barograph.cli.main", "run", "wordcount", "--format", "json", *options]
    done = subprocess.run(order, capture_output=True, text=True, timeout=timeout_s, check=False)
    try:
        report: Report = json.loads(done.stdout)
    except json.JSONDecodeError:
        return None, done.stderr[-2000:]
    return report, ""


def is_exact(report: Report) -> bool:
    """Every row that was due was counted, and once."""
    rows = report["rows"]
    counted_once = rows["lost"] == 0 and rows["counted_twice"] == 0 and rows["due"] > 0
    return bool(counted_once and report["lines"]["undrained"] == 0)
