"""Histograms of latencies: the error they promise, and that they merge."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.engines.latency import BUCKETS, Histogram, bounds, bucket_of, buckets_of, middle_ms

milliseconds = st.integers(0, (1 << 40) - 1) | st.integers(0, 100_000)


@given(milliseconds)
def test_a_bucket_stands_for_what_falls_into_it_within_one_per_cent(ms: int) -> None:
    low, high = bounds(bucket_of(ms))
    assert low <= ms <= high
    assert abs(middle_ms(bucket_of(ms)) - ms) <= 0.01 * ms


@given(milliseconds)
def test_buckets_follow_one_another_without_a_gap(ms: int) -> None:
    _, high = bounds(bucket_of(ms))
    assert bounds(bucket_of(ms) + 1)[0] == high + 1


@given(st.lists(milliseconds, min_size=1, max_size=50))
def test_many_values_at_once_have_the_buckets_of_each(values: list[int]) -> None:
    found = buckets_of(np.array(values, dtype=np.float64)).tolist()
    assert found == [bucket_of(ms) for ms in values]
    assert buckets_of(np.array(values) + 0.25).tolist() == found


def test_the_last_bucket_has_the_largest_values() -> None:
    assert buckets_of(np.array([-1.0, 1e300])).tolist() == [0, BUCKETS - 1]


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=200))
def test_percentiles_are_those_of_the_rows_within_one_per_cent(rows: list[int]) -> None:
    ordered = sorted(rows)
    found = Histogram.of(rows).latency()
    assert found is not None
    for part, value in ((0.5, found.p50), (0.99, found.p99), (0.999, found.p999)):
        exact = ordered[max(1, math.ceil(part * len(rows))) - 1]
        assert abs(value - exact) <= 0.01 * exact
    assert found.max == ordered[-1]
    assert math.isclose(found.mean, sum(rows) / len(rows))


@given(st.lists(milliseconds, max_size=50), st.lists(milliseconds, max_size=50))
def test_the_sum_of_two_is_the_histogram_of_both(some: list[int], others: list[int]) -> None:
    assert Histogram.of(some) + Histogram.of(others) == Histogram.of(some + others)


def test_nothing_seen_is_unknown_and_not_zero() -> None:
    assert Histogram().latency() is None


@pytest.mark.parametrize(("limit", "late"), [(30_000, 2), (25_000, 3), (50_000, 0)])
def test_rows_above_the_timeout_are_late(limit: int, late: int) -> None:
    assert Histogram.of([10, 29_000, 31_000, 40_000]).above(limit) == late


def test_the_largest_is_of_these_rows_where_the_epoch_has_seen_a_larger_one() -> None:
    """The plug-in tells the maximum of the epoch so far; it may be of a row that an earlier cycle told of."""
    found = Histogram({bucket_of(100): 3}, 300, 90_000).latency()
    assert found is not None
    assert found.max == 100


def test_clocks_that_disagree_make_no_latency_below_zero() -> None:
    found = Histogram.of([-5, 3]).latency()
    assert found is not None
    assert (found.p50, found.mean) == (0, 1.5)


def test_a_histogram_travels_between_processes() -> None:
    whole = Histogram({3: 2, 200: 1}, 1000.0, 900.0)
    assert pickle.loads(pickle.dumps(whole)) == whole
