"""Waits until the executors of an embedded cluster have compiled the code that ran last.

After a warm-up Java compiles in the background, on a slow machine for more than ten seconds of CPU an executor. On a
node with a low limit that would leave the instances of the measured run next to nothing.
"""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from barograph.engines.spark.cluster.node_status import executors_of
from barograph.engines.spark.cluster.runs import Run

QUIET_CORES = 0.1  # of all executors together: idle ones use about 0.01 each
_WINDOW_S = 0.5


def executors_pids(run: Run) -> list[int]:
    """Of the executors on every node."""
    return [p.pid for node in run.settings.node_names() for p in executors_of(run, node).values()]


def cpu_s(pids: Iterable[int]) -> float:
    """CPU time that these processes have used; one that has ended counts as 0."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def await_quiet(
    used_s: Callable[[], float],
    timeout_s: float = 30.0,
    now: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> bool:
    """Until they use less than ``QUIET_CORES`` in two windows one after the other; at most ``timeout_s``. Returns
    whether they do. used_s: the CPU time that they have used so far."""
    deadline, quiet = now() + timeout_s, 0
    then_s, before_s = now(), used_s()
    while quiet < 2 and then_s < deadline:
        wait(_WINDOW_S)
        now_s, used = now(), used_s()
        quiet = quiet + 1 if used - before_s < QUIET_CORES * (now_s - then_s) else 0
        then_s, before_s = now_s, used
    return quiet >= 2
