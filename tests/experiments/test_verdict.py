"""The verdict: one error cannot hide another."""

from barograph.experiments.verdict import judge
from barograph.workloads.keyed_counts import KeyedCounts

DUE = KeyedCounts(2, {"a": 3, "b": 2}, {"a": 7, "b": 9})


def test_an_exact_result() -> None:
    verdict = judge(DUE, KeyedCounts(0, {"a": 3, "b": 2}, {"a": 7, "b": 9}))
    assert (verdict.due, verdict.counted, verdict.lost, verdict.counted_twice) == (5, 5, 0, 0)
    assert verdict.exact


def test_a_loss_does_not_hide_an_excess() -> None:
    verdict = judge(DUE, KeyedCounts(0, {"a": 2, "b": 3}, {"a": 1, "b": 2}))
    assert (verdict.lost, verdict.counted_twice, verdict.exact) == (1, 1, False)


def test_words_that_never_were_due() -> None:
    verdict = judge(DUE, KeyedCounts(0, {"a": 3, "b": 2, "z": 4}, {"a": 7, "b": 9, "z": 1}))
    assert (verdict.lost, verdict.counted_twice, verdict.exact) == (0, 4, False)


def test_another_row_in_a_rows_place() -> None:
    verdict = judge(DUE, KeyedCounts(0, {"a": 3, "b": 2}, {"a": 8, "b": 9}))
    assert (verdict.lost, verdict.counted_twice, verdict.exact) == (0, 0, False)
