"""Ends an embedded cluster when the process that owns it has ended: ``python -m ... FOLDER PID START``.

It waits on the owner itself (a pidfd), not on a pipe, because a forked child of the owner could keep a pipe open; and
not for prctl's parent-death signal, which is bound to the parent's thread. It decides nothing else.
"""

import sys
import time
from pathlib import Path

from barograph.engines.spark.cluster.processes import Process, wait_gone
from barograph.engines.spark.cluster.runs import clear, read

# A process that the owner was just starting when it died has no mark until its program is loaded.
_STRAGGLERS_S = 0.2


def main(folder: str, pid: str, start_ticks: str) -> None:
    owner = Process(int(pid), int(start_ticks))
    wait_gone(owner, None)
    time.sleep(_STRAGGLERS_S)
    run = read(Path(folder))
    # Another run may have taken the name after an orderly end.
    if run is not None and run.owner == owner:
        clear(run)


if __name__ == "__main__":
    main(*sys.argv[1:])
