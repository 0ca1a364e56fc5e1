"""The end of a run: its source is closed, and what is left is read and committed."""

import time
from pathlib import Path

from barograph.engines.spark.checkpoint import committed_offsets
from barograph.engines.spark.supervise import Supervised
from barograph.engines.spark.supervisor import Supervisor
from barograph.experiments.rows_read import RowsRead
from barograph.experiments.warm import require_alive
from barograph.model import Plan
from barograph.workloads.replay import Replay

_LOOK_S = 0.05


def drained(
    query: Supervised, supervisor: Supervisor, read: RowsRead, replay: Replay, checkpoint: Path, most_s: float
) -> int:
    """Lines that are still unread when all is committed, or the time is over."""
    due, cut = sum(replay.rows()), Plan(cuts=(query.topology,))
    deadline = time.monotonic() + most_s
    while (left := due - sum(committed_offsets(checkpoint))) > 0 and time.monotonic() < deadline:
        require_alive(query)
        supervisor.engine.refresh()
        if read.rows() >= due:
            supervisor.apply(cut)
        else:
            time.sleep(_LOOK_S)
    if left > 0:  # what was read in time is committed with a last cut
        supervisor.apply(cut)
        left = due - sum(committed_offsets(checkpoint))
    # The last rows out are reported a moment after the epoch has ended.
    supervisor.engine.refresh()
    return left
