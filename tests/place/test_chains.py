"""Aniello's reference chains: inter-node traffic of online <= offline <= even, on the mean over seeds."""

import numpy as np
import pytest

from barograph.model import Demand, Edge, EdgeTraffic, Grouping, Node, Operator, OperatorDemand, Snapshot, Topology
from barograph.place import Placer
from barograph.place.even import even
from barograph.place.offline import Offline
from barograph.place.online import Online
from barograph.place.support.cost import traffic_between
from tests.place.worked import ALL

NODES = tuple(Node(f"n{k}", 800, slots=5) for k in range(8))
RATE, SPREAD = 100.0, 0.2


def emitted(instances: int) -> list[float]:
    """R_i = R(1 - V(1 - 2i/(C0 - 1)))."""
    if instances == 1:
        return [RATE]
    return [RATE * (1 - SPREAD * (1 - 2 * i / (instances - 1))) for i in range(instances)]


def chain(stages: int, replication: int, seed: int) -> tuple[Snapshot, Demand]:
    """Source, then simple and stateful operators in turn, the last stage an ack: stages + 1 components. Half of what an
    instance forwards to a stateful operator is a constant of its own, so it all goes to one instance there."""
    rng = np.random.default_rng([stages, replication, seed])
    names = [f"c{k}" for k in range(stages + 1)]
    counts = [replication] * (stages + 1)
    out = np.array(emitted(replication))
    edges, traffic = [], []
    for k in range(1, stages + 1):
        n, m = counts[k - 1], counts[k]
        by_key = k % 2 == 0 and k < stages
        rows = np.repeat(out[:, None] / m, m, axis=1)
        if by_key:
            rows /= 2
            rows[np.arange(n), rng.integers(0, m, n)] += out / 2
        edges.append(Edge(names[k - 1], names[k], Grouping.FIELDS if by_key else Grouping.SHUFFLE))
        traffic.append(EdgeTraffic("t", names[k - 1], names[k], rows))
        out = rows.sum(axis=0)
    operators = tuple(Operator(o, c, source=k == 0) for k, (o, c) in enumerate(zip(names, counts, strict=True)))
    topology = Topology("t", operators, tuple(edges), workers=6)
    now = Snapshot(0, 1, NODES, (topology,), traffic=tuple(traffic), shared_workers=False)
    return now, Demand(tuple(OperatorDemand("t", o, c, (20.0,) * c) for o, c in zip(names, counts, strict=True)))


def test_rates_of_the_source() -> None:
    assert emitted(4) == pytest.approx([80, 93.333, 106.667, 120], abs=1e-3)


@pytest.mark.parametrize("replication", [2, 4])
@pytest.mark.parametrize("stages", [3, 4, 5, 6, 7])
def test_online_is_below_offline_is_below_even(stages: int, replication: int) -> None:
    mean = np.zeros(3)
    for seed in range(30):
        now, demand = chain(stages, replication, seed)
        placers: tuple[Placer, ...] = (Online(alpha=0), Offline(alpha=0, beta=0.5), even)
        for k, placer in enumerate(placers):
            mean[k] += traffic_between(now, demand, placer((), now, demand, ALL).placement)[0] / 30
    assert mean[0] <= mean[1] + 1e-9
    assert mean[1] <= mean[2] + 1e-9
