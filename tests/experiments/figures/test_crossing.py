"""Rows between workers and nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cycles import chain, nodes, seen

from barograph.experiments.figures.crossing import Crossed, crossed
from barograph.model import EdgeTraffic, Instance, Operator, Placement, Slot

TOPOLOGY = chain(Operator("s", 2, source=True), Operator("a", 2))
ROWS = np.array([[1.0, 10.0], [100.0, 1000.0]])
SLOTS = [Slot("n1", 0), Slot("n1", 1), Slot("n2", 0)]


def seen_at(homes: list[Slot | None], rows: "np.ndarray[tuple[int, int], np.dtype[np.float64]]" = ROWS) -> Crossed:
    instances = [Instance("t", o, i) for o in ("s", "a") for i in range(2)]
    placement = Placement({i: home for i, home in zip(instances, homes, strict=True) if home is not None})
    traffic = (EdgeTraffic("t", "s", "a", rows),)
    return crossed(seen(TOPOLOGY, {}, cluster=nodes(2, slots=2), placement=placement, traffic=traffic))


CASES: dict[str, tuple[list[Slot | None], Crossed]] = {
    "all in one worker": ([SLOTS[0]] * 4, Crossed(1111, 0, 0)),
    "two workers of a node": ([SLOTS[0], SLOTS[0], SLOTS[1], SLOTS[1]], Crossed(1111, 1111, 0)),
    "two nodes": ([SLOTS[0], SLOTS[0], SLOTS[2], SLOTS[2]], Crossed(1111, 1111, 1111)),
    "each way once": ([SLOTS[0], SLOTS[2], SLOTS[1], SLOTS[2]], Crossed(1111, 111, 110)),
    "a place that is not known": ([SLOTS[0], None, SLOTS[0], SLOTS[2]], Crossed(11, 10, 10)),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_told_apart(name: str) -> None:
    homes, expected = CASES[name]
    assert seen_at(homes) == expected


@given(st.lists(st.sampled_from(SLOTS), min_size=4, max_size=4), st.lists(st.floats(0, 1e6), min_size=4, max_size=4))
def test_a_row_between_nodes_is_one_between_workers(homes: list[Slot | None], rows: list[float]) -> None:
    found = seen_at(homes, np.array(rows).reshape(2, 2))
    assert 0 <= found.between_nodes <= found.between_workers <= found.sent + 1e-6
    assert found.sent == pytest.approx(sum(rows))
