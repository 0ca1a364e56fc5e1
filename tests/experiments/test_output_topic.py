"""The topic that a run writes: every result at least once."""

import pytest

from barograph.experiments.output_topic import OutputVerdict, judge_output
from barograph.workloads.keyed_counts import KeyedCounts

DUE = KeyedCounts(5, {"a": 3, "b": 2}, {"a": 0, "b": 0})


@pytest.mark.parametrize(
    ("found", "verdict", "complete"),
    [
        ([("a", 3, 3, 3), ("b", 2, 2, 2)], OutputVerdict(5, 0, 0, 0), True),
        ([("a", 5, 3, 3), ("b", 2, 2, 2)], OutputVerdict(7, 0, 2, 0), True),
        ([("a", 3, 2, 3), ("b", 2, 2, 2)], OutputVerdict(5, 1, 1, 0), False),
        ([("a", 3, 3, 3)], OutputVerdict(3, 2, 0, 0), False),
        ([("a", 4, 4, 4), ("b", 2, 2, 2)], OutputVerdict(6, 0, 0, 1), False),
        ([("a", 3, 3, 3), ("b", 2, 2, 2), ("c", 1, 1, 1)], OutputVerdict(6, 0, 0, 1), False),
        ([], OutputVerdict(0, 5, 0, 0), False),
    ],
)
def test_what_is_missing_repeated_or_wrong(
    found: list[tuple[str, int, int, int]], verdict: OutputVerdict, complete: bool
) -> None:
    assert judge_output(DUE, found) == verdict
    assert verdict.is_complete is complete
