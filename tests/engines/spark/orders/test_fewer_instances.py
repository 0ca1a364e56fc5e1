"""A topology for which there are too few seats gets fewer instances of operators that can be scaled."""

from dataclasses import replace

import pytest

from barograph.engines.spark.orders.placement_orders import FewerInstances, fitting
from barograph.model import Topology
from barograph.workloads import wordcount

WANTED = {"source": 2, "split": 9, "count": 3}


@pytest.fixture
def topology() -> Topology:
    made = wordcount.topology(WANTED)
    fixed = [replace(o, fixed_because="" if o.name == "split" else "it is") for o in made.operators]
    return replace(made, operators=tuple(fixed))


@pytest.mark.parametrize(("seats", "splits"), [(16, 9), (14, 9), (13, 8), (8, 3), (6, 1), (2, 1)])
def test_as_many_instances_as_seats_and_at_least_one(topology: Topology, seats: int, splits: int) -> None:
    assert fitting(topology, WANTED, seats) == {**WANTED, "split": splits}


def test_the_operator_with_most_instances_shrinks_first() -> None:
    free = wordcount.topology({"source": 2, "split": 9, "count": 3})
    free = replace(free, operators=tuple(replace(o, stateful=False, fixed_because="") for o in free.operators))
    assert fitting(free, WANTED, 8) == {"source": 2, "split": 3, "count": 3}
    assert fitting(free, WANTED, 3) == {"source": 1, "split": 1, "count": 1}


def test_a_stateful_operator_keeps_the_parts_of_its_state() -> None:
    made = wordcount.topology({"source": 2, "split": 1, "count": 9})
    made = replace(made, operators=tuple(replace(o, fixed_because="") for o in made.operators))
    assert fitting(made, {"source": 2, "split": 1, "count": 9}, 5)["count"] == 9


def test_only_what_differs_is_ordered() -> None:
    assert FewerInstances(WANTED, {**WANTED, "split": 4}).changed == {"split": 4}
