"""The end of a run: its inputs are closed; the rows that are left are read and committed."""

import time
from collections.abc import Sequence
from pathlib import Path

from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.interfaces import WatchedQueries
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.experiments.figures.rows_read import RowsRead
from barograph.experiments.running.warm_up import require_alive
from barograph.model import Plan
from barograph.workloads.replay import Replay
from barograph.workloads.workload import rows_due

_LOOK_S = 0.05


def drained(
    query: Supervised,
    supervisor: Supervisor,
    read: RowsRead,
    inputs: Sequence[Replay],
    checkpoint: Path,
    most_s: float,
) -> int:
    """Input rows that are still not committed after ``most_s`` seconds."""
    due, cut = rows_due(inputs), Plan(cuts=(query.topology,))
    seen: WatchedQueries = supervisor.engine
    deadline = time.monotonic() + most_s
    while (left := due - sum(committed_offsets(checkpoint))) > 0 and time.monotonic() < deadline:
        require_alive(query)
        seen.refresh()
        if read.rows() >= due:
            supervisor.apply(cut)
        else:
            time.sleep(_LOOK_S)
    if left > 0:  # rows that were read in time are committed with a last cut
        supervisor.apply(cut)
        left = due - sum(committed_offsets(checkpoint))
    # The last rows out are reported a moment after the epoch has ended.
    seen.refresh()
    return left
