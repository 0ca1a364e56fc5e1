"""One topology on two nodes, for the tests of epoch lengths and of quiet moments."""

import numpy as np
from tests.cycles import chain, nodes

from barograph.model import (
    Instance,
    Latency,
    Metrics,
    Operator,
    Placement,
    Slot,
    Snapshot,
    TopologyMetrics,
    Worker,
)

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("k", 2))
S, K0, K1 = Instance("t", "s", 0), Instance("t", "k", 0), Instance("t", "k", 1)
ONE, TWO = Slot("n1"), Slot("n2")


def world(
    load: float = 100.0, busy: tuple[float, float, float] = (1.0, 5.0, 2.0), *, cpu_pct: float = 600.0,
    backlog: float = 0.0, at_s: float = 100.0, wait_s: float = 0.1, placement: dict[Instance, Slot] | None = None,
) -> Snapshot:  # fmt: skip
    """A cycle of 10 s; busy: seconds that s, k/0 and k/1 worked in it."""
    rows = np.array([load, load / 2, load / 2]) * 10.0
    return Snapshot(
        at_s, 10.0, nodes(2, cpu_pct), (TOPOLOGY,), tuple(Worker(s, s.node, 8) for s in (ONE, TWO)),
        Placement(dict.fromkeys((S, K0, K1), ONE) if placement is None else placement),
        Metrics((S, K0, K1), {"arrived": rows, "executed": rows, "busy_s": np.array(busy), "cpu_s": np.array(busy)}),
        topology_metrics=(TopologyMetrics("t", backlog_rows=backlog, latency_due=Latency(*[wait_s * 1000] * 5)),),
    )  # fmt: skip
