"""Rows out by centisecond: a mapping like any other, but bounded and small."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from barograph.engines.spark.bridge.output_counts import PIECE_CENTISECONDS, OutputCounts

START = 180_000_000_000


@given(st.lists(st.tuples(st.integers(0, 900) | st.integers(0, 20_000), st.integers(0, 50))))
def test_it_equals_a_dict(reports: list[tuple[int, int]]) -> None:
    flow, plain = OutputCounts(), dict[int, int]()
    for offset, rows in reports:
        flow.add(START + offset, rows)
        if rows:
            plain[START + offset] = plain.get(START + offset, 0) + rows
    assert dict(flow) == flow.as_dict() == plain
    assert (len(flow), list(flow), sorted(flow.values())) == (len(plain), sorted(plain), sorted(plain.values()))
    assert flow.total == sum(plain.values())
    assert flow.between(START + 100, START + 300) == sum(n for t, n in plain.items() if 100 <= t - START < 300)
    assert flow.get(START + 5, 0) == plain.get(START + 5, 0)


def test_the_newest_are_kept() -> None:
    flow = OutputCounts(most=1000)
    for k in range(0, 20_000, 10):
        flow.add(START + k, 1)
    assert START + 19_990 in flow and START + 19_000 in flow
    assert START + 1_000 not in flow
    assert sum(len(piece) for piece in flow._pieces.values()) <= 2 * PIECE_CENTISECONDS
    flow.add(START, 5)
    assert START not in flow, "too late"
    flow.add(START + 10_000_000, 7)
    assert flow.as_dict() == {START + 10_000_000: 7}
    with pytest.raises(KeyError):
        flow[START + 19_990]
