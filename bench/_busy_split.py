"""Shared by the cases of the bench of CPU limits: a word count whose split is busy, and waiting while it runs."""

import time
from dataclasses import replace
from functools import partial

from barograph.testing.local_cluster import RunningQuery
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from barograph.workloads.workload import Workload

BUSY = {"split": 200}
ONE = {"source": 1, "split": 1, "count": 2}  # with one instance of count, Spark would make one operator of both
SETTLE_S = 2.0


def busy() -> Workload:
    return replace(WORDCOUNT, query=partial(WORDCOUNT.query, busy_us=BUSY))


def wait(counting: RunningQuery, seconds: float) -> None:
    end = time.monotonic() + seconds
    counting.settle(lambda: time.monotonic() > end, seconds + 60.0, look_s=min(0.5, seconds))
