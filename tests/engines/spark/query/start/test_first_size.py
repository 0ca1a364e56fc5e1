"""The instances of a first start: they fit, and leave room where they can."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.engines.spark.query.start.first_size import fitting_at_first
from barograph.model import Edge, Grouping, Operator, Topology


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
    chosen = fitting_at_first(topology, seats)
    assert (None if chosen is None else tuple(chosen.values())) == found


@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 300), st.integers(1, 64))
def test_it_fits_or_cannot(sources: int, split: int, count: int, seats: int) -> None:
    chosen = fitting_at_first(words(sources, split, count), seats)
    if chosen is None:
        assert sources + 2 > seats
    else:
        assert sum(chosen.values()) <= seats
        assert chosen["source"] == sources
        assert 1 <= chosen["split"] <= split
        assert 1 <= chosen["count"] <= count
