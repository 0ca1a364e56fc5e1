"""How an operator's rows are distributed over its instances. A mean over instances hides an overloaded one."""

import numpy as np
from numpy.typing import NDArray

from barograph.model import Frame, Grouping, Topology

_UNEVEN = (Grouping.FIELDS, Grouping.GLOBAL, Grouping.DIRECT)


def may_be_skewed(topology: Topology, operator: str) -> bool:
    """True for sources, whose partitions may differ, and for operators fed by key; shuffled rows are even."""
    into = [e.grouping for e in topology.edges if e.target == operator]
    return not into or any(g in _UNEVEN for g in into)


def parts_of_arrivals(
    frame: Frame, topology: Topology, operator: str, instances: int, cycles: int
) -> NDArray[np.float64]:
    """The part of the operator's arrivals that goes to each instance, over the last cycles; the sum is 1."""
    even = np.full(instances, 1.0 / instances)
    if not may_be_skewed(topology, operator):
        return even
    total = np.zeros(instances)
    for snapshot in frame.snapshots[-cycles:]:
        rows = snapshot.metrics.rows_of_operator.get((topology.name, operator))
        if rows is not None and len(rows) == instances:
            total = total + snapshot.metrics.columns["arrived"][rows]
    found: NDArray[np.float64] = total / total.sum() if total.sum() > 0 else even
    return found


def backlog_rows(frame: Frame, topology: str, operator: str, instances: int) -> NDArray[np.float64]:
    """Rows waiting for each instance now."""
    metrics = frame.snapshots[-1].metrics
    rows = metrics.rows_of_operator.get((topology, operator))
    if rows is None:
        return np.zeros(instances)
    pending = np.maximum(metrics.columns["pending"][rows], 0.0)
    return pending if len(rows) == instances else np.full(instances, float(pending.sum()) / instances)
