"""The instances of a first start: they fit, and leave room where they can."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.config import resolve
from barograph.control.first_size import choice_by
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.engines.spark.query.start.first_size import fitting_at_first, with_kept_state, within_most
from barograph.model import Edge, Grouping, Node, Operator, Slot, Snapshot, Topology, Worker


def chain(*operators: Operator) -> Topology:
    return Topology("words", operators, tuple(Edge(a.name, b.name, Grouping.FIELDS) for a, b in pairwise(operators)))


def words(sources: int, split: int, count: int, again: int = 0) -> Topology:
    more = [Operator("again", again, stateful=True)] if again else []
    source = Operator("source", sources, source=True, fixed_because="its input has so many partitions")
    return chain(source, Operator("split", split), Operator("count", count, stateful=True), *more)


@pytest.mark.parametrize(
    ("topology", "seats", "found"),
    [
        (words(2, 2, 200), 12, (2, 2, 2)),  # half of the seats are left for scaling and moves
        (words(2, 2, 200), 5, (2, 1, 1)),  # as few as can be
        (words(2, 2, 200), 4, (2, 1, 1)),
        (words(2, 2, 200), 3, None),
        (words(2, 16, 200), 24, (2, 5, 5)),  # what has most shrinks first
        (words(1, 1, 200, 200), 16, (1, 1, 3, 3)),  # all stateful operators have the same number
        (words(20, 1, 1), 16, None),
    ],
)
def test_the_instances_of_a_first_start(topology: Topology, seats: int, found: tuple[int, ...] | None) -> None:
    chosen, by_policy = fitting_at_first(topology, seats)
    assert (None if chosen is None else tuple(chosen.values())) == found
    assert not by_policy


@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 300), st.integers(1, 64))
def test_it_fits_or_cannot(sources: int, split: int, count: int, seats: int) -> None:
    chosen, _ = fitting_at_first(words(sources, split, count), seats)
    if chosen is None:
        assert sources + 2 > seats
    else:
        assert sum(chosen.values()) <= seats
        assert chosen["source"] == sources
        assert 1 <= chosen["split"] <= split
        assert 1 <= chosen["count"] <= count


@pytest.mark.parametrize(
    ("instances", "excluded", "seats", "found"),
    [
        ("count=1..3", "", 24, {"source": 2, "split": 7, "count": 3}),  # at most
        ("split=6..8", "", 24, {"source": 2, "split": 6, "count": 4}),  # at least
        ("split=6..8,count=6..", "", 24, {"source": 2, "split": 6, "count": 6}),  # more than half, as they must
        ("split=6..8,count=6..", "", 13, None),
        ("", "split", 24, {"source": 2, "split": 9, "count": 1}),  # left as it is
        ("", "split", 11, None),
        ("", "count", 24, None),
        ("words/split=2..2", "", 24, {"source": 2, "split": 2, "count": 8}),
    ],
)
def test_what_is_declared_for_operators_holds(
    instances: str, excluded: str, seats: int, found: dict[str, int] | None
) -> None:
    declared = QueryOptions(instances=instances, excluded=excluded).of(words(2, 9, 200))
    assert fitting_at_first(declared, seats) == (found, False)


def test_of_a_query_with_a_checkpoint_only_operators_without_state_get_fewer() -> None:
    kept = with_kept_state(words(2, 200, 6))
    assert fitting_at_first(kept, 24) == ({"source": 2, "split": 4, "count": 6}, False)
    assert fitting_at_first(kept, 9) == ({"source": 2, "split": 1, "count": 6}, False)
    assert fitting_at_first(kept, 8) == (None, False)


def test_what_is_wanted_later_is_within_the_bounds() -> None:
    declared = QueryOptions(instances="split=1..8,count=2..4").of(words(2, 200, 200))
    assert within_most(declared) == {"source": 2, "split": 8, "count": 4}


CLUSTER = tuple(Node(f"n{i}", 200.0, 1, 8) for i in range(3))
SEEN = Snapshot(0.0, 1.0, CLUSTER, (), tuple(Worker(Slot(n.name, 0), n.name, 8) for n in CLUSTER))


def chosen_by(policy: str, topology: Topology, **options: object) -> tuple[dict[str, int] | None, bool]:
    choice = choice_by(resolve(mapping={"policy": policy}), options)
    asked = choice.asked
    assert asked is not None and choice.policy == policy
    return fitting_at_first(topology, 24, lambda sized: asked(sized, SEEN))


@pytest.mark.parametrize("policy", ["adaptive", "even", "r-storm", "t-storm", "liu", "true-rate"])
def test_a_policy_that_places_every_instance_has_the_size_chosen(policy: str) -> None:
    assert chosen_by(policy, words(2, 2, 200)) == ({"source": 2, "split": 2, "count": 8}, True)


def test_a_policy_with_nodes_of_its_own_for_a_query_chooses_what_fits_them() -> None:
    """Half of all seats are twelve, and the node that it gets has eight."""
    alone = replace(words(2, 2, 200), isolate_nodes=1)
    assert chosen_by("isolation", alone) == ({"source": 2, "split": 2, "count": 4}, True)
    assert chosen_by("even", alone) == ({"source": 2, "split": 2, "count": 8}, True)


def test_the_policy_is_held_to_what_is_declared() -> None:
    declared = QueryOptions(instances="count=1..3", quota_executors=1).of(words(2, 2, 200))
    assert chosen_by("adaptive", declared) == ({"source": 2, "split": 2, "count": 3}, True)


def test_a_policy_that_reserves_a_core_for_each_instance_chooses_as_many_as_there_are_cores() -> None:
    assert chosen_by("fixed", words(2, 2, 200)) == ({"source": 2, "split": 2, "count": 2}, True)


def test_where_the_policy_places_nothing_the_rule_holds() -> None:
    assert chosen_by("spark", words(2, 2, 200)) == ({"source": 2, "split": 2, "count": 8}, False)


def test_without_a_policy_nothing_is_asked() -> None:
    assert choice_by(resolve(), {}).asked is None
