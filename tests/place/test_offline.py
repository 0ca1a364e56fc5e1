"""Offline placement: worked numbers (Aniello et al., 3.1)."""

import pytest

from barograph.model import BadInput, Node
from barograph.place.even import even
from barograph.place.offline import Offline
from barograph.place.support.cost import traffic_between
from barograph.place.support.spread import most_per_worker
from tests.place.worked import ALL, farm, groups, sets, six, world

FOUR = {("s", "a"): [[1.0, 1.0]] * 2, ("a", "b"): [[1.0, 1.0]] * 2, ("b", "k"): [[1.0, 1.0]] * 2}


@pytest.mark.parametrize(("alpha", "most"), [(0, 4), (0.05, 5), (0.2, 8), (1, 23)])
def test_most_per_worker(alpha: float, most: int) -> None:
    assert most_per_worker(30, 8, alpha) == most


def test_six_instances_on_three_workers() -> None:
    now, demand = six(farm(3), 3)
    decision = Offline(alpha=0, beta=0.5)((), now, demand, ALL)
    assert groups(decision.placement) == sets("s0 a1", "s1 b1", "a0 b0")
    assert traffic_between(now, demand, decision.placement)[0] == pytest.approx(290)
    assert traffic_between(now, demand, even((), now, demand, ALL).placement)[0] == pytest.approx(360)


@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [
        (0.0, 0.5, sets("s0 a0", "s1 a1", "b0 k0", "b1 k1")),
        (1.0, 0.0, sets("s0", "s1", "a0 b0 k0", "a1 b1 k1")),
    ],
)
def test_beta_says_when_empty_workers_must_be_used(alpha: float, beta: float, expected: set[frozenset[str]]) -> None:
    now, demand = world({"s": 2, "a": 2, "b": 2, "k": 2}, FOUR, farm(4), 4)
    assert groups(Offline(alpha, beta)((), now, demand, ALL).placement) == expected


def test_workers_still_empty_at_the_end_are_filled() -> None:
    now, demand = world({"s": 1, "a": 3}, {("s", "a"): [[1.0, 1.0, 1.0]]}, farm(3), 3)
    decision = Offline(alpha=1, beta=1)((), now, demand, ALL)
    assert sorted(len(g) for g in groups(decision.placement)) == [1, 1, 2]


def test_too_few_slots_are_refused_with_what_is_missing() -> None:
    now, demand = six((Node("n1", 100, slots=2),), 3)
    decision = Offline()((), now, demand, ALL)
    assert len(decision.placement) == 0
    assert {r.reason for r in decision.unplaced} == {"the topologies need 3 slots and there are 2: 1 are missing"}


@pytest.mark.parametrize(("alpha", "beta"), [(-0.1, 0.5), (0, 1.5), (float("nan"), 0)])
def test_options_out_of_range(alpha: float, beta: float) -> None:
    with pytest.raises(BadInput, match="must be between 0 and 1"):
        Offline(alpha, beta)
