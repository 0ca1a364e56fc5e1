"""Evaluating pairs many at a time, and even ranges by their bins, gives the same as evaluating them one by one."""

import numpy as np
import pytest

from barograph.model import Allotment, Demand, Edge, EdgeTraffic, Node, Operator, Snapshot, Topology
from barograph.place.online_pairing import Bins
from barograph.place.support import pairs as pairs_module
from barograph.place.support.cluster_arrays import ClusterArrays
from barograph.place.support.links import links_of, pairs_of
from barograph.place.support.match import assign
from barograph.place.support.topology_arrays import TopologyArrays, factors, topology_arrays


def arrays_of(seed: int) -> TopologyArrays:
    """Three operators: an even edge, one by key (a product), one measured (no product), and a loop."""
    rng = np.random.default_rng(seed)
    n, m, k = (int(c) for c in rng.integers(2, 9, 3))
    names = ("a", "b", "c")
    operators = tuple(
        Operator(o, c, o == "a", cpu_pct=float(rng.integers(1, 9))) for o, c in zip(names, (n, m, k), strict=True)
    )
    kind = int(rng.integers(0, 3))
    last = (
        np.broadcast_to(np.float64(3.0), (m, k)),
        np.broadcast_to(rng.random(k), (m, k)),
        rng.random((m, k)),
    )[kind]
    traffic = (
        EdgeTraffic("t", "a", "b", np.broadcast_to(np.float64(2.0), (n, m))),
        EdgeTraffic("t", "b", "c", last),
        EdgeTraffic("t", "c", "c", np.broadcast_to(np.float64(0.5), (k, k))),
    )
    edges = (Edge("a", "b"), Edge("b", "c"), Edge("c", "c", feedback=True))
    now = Snapshot(0, 1, (Node("n", 1e6),), (Topology("t", operators, edges),), traffic=traffic, shared_workers=False)
    return topology_arrays(now, Demand(()), ClusterArrays(now, Allotment()))[0]


def bins_for(arrays: TopologyArrays, seed: int) -> Bins:
    rng = np.random.default_rng([seed, 1])
    count = int(rng.integers(2, 6))
    most = np.full(count, -(-arrays.size // count) + int(rng.integers(0, 3)))
    capacity = np.full(count, arrays.cpu_pct.sum() * rng.choice([0.3, 0.6, 2.0]))
    return Bins(arrays.cpu_pct, most, capacity, np.zeros(count), links_of(arrays))


@pytest.mark.parametrize("seed", range(40))
def test_blocks_equal_pair_by_pair(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_module, "NARROW", 0)
    arrays = arrays_of(seed)
    pairs = pairs_of(arrays, arrays.cpu_pct)
    at_once, one_by_one = bins_for(arrays, seed), bins_for(arrays, seed)
    at_once.take_pairs(pairs)
    one_by_one.hair = at_once.hair
    for i, j, rate in zip(pairs.i.tolist(), pairs.j.tolist(), pairs.rate.tolist(), strict=True):
        one_by_one._settle(i, j, rate)
    assert at_once.home.tolist() == one_by_one.home.tolist()


def test_some_of_these_cases_are_evaluated_as_even_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_module, "NARROW", 0)
    assert any(pairs_of(c, c.cpu_pct).even for c in map(arrays_of, range(40)))


def test_affinity_is_kept_up_to_date() -> None:
    arrays = arrays_of(3)
    bins = bins_for(arrays, 3)
    bins.take_pairs(pairs_of(arrays, arrays.cpu_pct))
    bins.place_rest()
    fresh = np.zeros_like(bins.affinity)
    for i in range(arrays.size):
        for others, rows in links_of(arrays)(i):
            fresh[bins.home[i], others] += rows
    assert np.allclose(bins.affinity, fresh)


@pytest.mark.parametrize(
    ("rows", "is_product"),
    [
        (np.outer([1.0, 2.0, 0.0], [3.0, 4.0]), True),
        (np.broadcast_to(np.float64(2.0), (4, 5)), True),
        (np.array([[1.0, 2.0], [3.0, 4.0]]), False),
        (np.zeros((2, 3)), True),
    ],
)
def test_products_are_recognised(rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]], is_product: bool) -> None:
    found = factors(rows)
    assert (found is not None) == is_product
    if found is not None:
        assert np.allclose(np.outer(*found), rows)


def test_assignment_keeps_most() -> None:
    worth = np.array([[5.0, 9.0, 1.0], [10.0, 3.0, 2.0], [8.0, 7.0, 4.0]])
    assert assign(worth).tolist() == [1, 0, 2]
    assert assign(np.array([[-np.inf, 1.0], [2.0, 5.0]])).tolist() == [1, 0]
