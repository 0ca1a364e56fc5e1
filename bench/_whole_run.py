"""A whole ``barograph run`` as a user starts it, and its report."""

import json
import subprocess
import sys
from typing import Any

Report = dict[str, Any]


def whole_run(workload: str, *options: str, timeout_s: float = 400.0) -> tuple[Report | None, str]:
    """The report and nothing; where there is none, None and the end of the standard error."""
    order = [sys.executable, "-m", "barograph.cli.main", "run", workload, "--format", "json", *options]
    done = subprocess.run(order, capture_output=True, text=True, timeout=timeout_s, check=False)
    try:
        report: Report = json.loads(done.stdout)
    except json.JSONDecodeError:
        return None, done.stderr[-2000:]
    return report, ""


def is_exact(report: Report) -> bool:
    """Every row that was due was counted exactly once."""
    rows = report["rows"]
    counted_once = rows["lost"] == 0 and rows["counted_twice"] == 0 and rows["due"] > 0
    return bool(counted_once and report["lines"]["undrained"] == 0)
