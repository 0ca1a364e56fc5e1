"""Waits double up to a maximum."""

from barograph.engines.spark.backoff import doubled_s


def test_doubled_up_to_the_longest() -> None:
    assert [doubled_s(0.5, n, 3.0) for n in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert doubled_s(0.1, 2) == 0.4
    assert doubled_s(1.0, 10_000, 30.0) == 30.0
