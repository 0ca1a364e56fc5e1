"""Rows out by centisecond: a mapping like any other, but bounded and small."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from barograph.engines.spark.bridge.output_counts import PIECE_CENTISECONDS, OutputCounts

START = 180_000_000_000


def put(flow: OutputCounts, centisecond: int, rows: int) -> None:
    flow.put(np.array([centisecond]), np.array([rows]))


@given(st.lists(st.tuples(st.integers(0, 900) | st.integers(0, 20_000), st.integers(0, 50))))
def test_it_equals_a_dict(reports: list[tuple[int, int]]) -> None:
    flow, plain = OutputCounts(), dict[int, int]()
    for offset, rows in reports:
        put(flow, START + offset, rows)
        plain[START + offset] = rows
    plain = {t: rows for t, rows in plain.items() if rows}
    assert dict(flow) == flow.as_dict() == plain
    assert (len(flow), list(flow), sorted(flow.values())) == (len(plain), sorted(plain), sorted(plain.values()))
    assert flow.total == sum(plain.values())
    assert flow.between(START + 100, START + 300) == sum(n for t, n in plain.items() if 100 <= t - START < 300)
    assert flow.get(START + 5, 0) == plain.get(START + 5, 0)


def test_the_newest_are_kept() -> None:
    flow = OutputCounts(most=1000)
    for k in range(0, 20_000, 10):
        put(flow, START + k, 1)
    assert START + 19_990 in flow and START + 19_000 in flow
    assert START + 1_000 not in flow
    assert sum(len(piece) for piece in flow._pieces.values()) <= 2 * PIECE_CENTISECONDS
    flow.update({START: 5, START + 20_000: 1})
    assert START not in flow, "too late"
    put(flow, START + 10_000_000, 7)
    assert flow.as_dict() == {START + 10_000_000: 7}
    with pytest.raises(KeyError):
        flow[START + 19_990]


def test_many_counts_come_at_once() -> None:
    flow = OutputCounts(most=PIECE_CENTISECONDS)
    centiseconds = START + np.arange(0, 3 * PIECE_CENTISECONDS, 7)
    flow.put(centiseconds, np.arange(len(centiseconds)) + 1)
    assert max(flow) == centiseconds[-1] and flow[int(centiseconds[-1])] == len(centiseconds)
    assert START not in flow
    flow.put(centiseconds[-1:], np.array([3]))
    assert flow[int(centiseconds[-1])] == 3, "the total of a centisecond, not an amount to add"


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 9))), st.lists(st.integers(0, 20_000)))
def test_news_are_what_another_does_not_know(reports: list[tuple[int, int]], also: list[int]) -> None:
    counts, known = OutputCounts(), OutputCounts()
    known.update(dict(reports))
    counts.update(dict(reports))
    counts.update(dict.fromkeys(also, 10))
    assert counts.news_for(known) == dict.fromkeys(also, 10)
    known.update(counts.news_for(known))
    assert known.as_dict() == counts.as_dict()
    assert not counts.news_for(known)


def test_the_total_has_also_what_was_dropped() -> None:
    counts = OutputCounts(most=6_000)
    for minute in range(100):
        counts.update({minute * 6_000: 2})
    assert counts.total_ever == 200
    assert len(counts) <= 3


@pytest.mark.parametrize("back", [3_000, 30_010, 3_600_000, 360_000_000])
def test_rows_count_after_the_clock_was_set_back(back: int) -> None:
    """A rate is of the last seconds, whatever was counted before."""
    flow = OutputCounts(most=30_000)
    for k in range(0, 100_000, 10):
        put(flow, START + k, 1)
    for k in range(0, 100_000, 10):
        put(flow, START + 100_000 - back + k, 3)
        assert len(flow._pieces) <= 30_000 // PIECE_CENTISECONDS + 2
        if k >= 1_000:
            assert flow.between(START + 100_000 - back + k - 990, START + 100_000 - back + k + 10) == 300
    if back > 100_000:  # else some take the place of others
        assert flow.total_ever == 40_000


def test_a_straggler_costs_no_later_rows() -> None:
    flow = OutputCounts(most=30_000)
    for k in range(0, 20_000, 10):
        put(flow, START + k, 1)
    put(flow, START - 1_000_000, 9)
    put(flow, START + 20_000, 1)
    assert flow.between(START, START + 20_010) == 2_001
    assert START - 1_000_000 not in flow and flow.total_ever == 2_010
