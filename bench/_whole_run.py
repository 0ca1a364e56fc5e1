"""A whole ``barograph run`` as a user starts it, and its report."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

Report = dict[str, Any]


def _ignored(_: int) -> None:
    pass


def whole_run(
    workload: str, *options: str, timeout_s: float = 400.0, started: Callable[[int], None] = _ignored
) -> tuple[Report | None, str]:
    """The report and nothing; where there is none, None and the end of the standard error. started: is told the number
    of the process."""
    order = [sys.executable, "-m", "barograph.cli.main", "run", workload, "--format", "json", *options]
    with subprocess.Popen(order, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        started(child.pid)
        try:
            out, said = child.communicate(timeout=timeout_s)
        except BaseException:
            child.kill()
            raise
    try:
        report: Report = json.loads(out)
    except json.JSONDecodeError:
        return None, said[-2000:]
    return report, ""


def is_exact(report: Report) -> bool:
    """Every row that was due was counted exactly once."""
    rows = report["rows"]
    counted_once = rows["lost"] == 0 and rows["counted_twice"] == 0 and rows["checksum_ok"] and rows["due"] > 0
    return bool(counted_once and report["lines"]["undrained"] == 0)
