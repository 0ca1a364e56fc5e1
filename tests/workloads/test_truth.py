from collections import Counter
from dataclasses import replace

import pytest

from barograph.model import BadInput, Load
from barograph.workloads.keyed_counts import KeyedCounts, counts_of
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import Replay
from barograph.workloads.truth import truth_by_numpy

REPLAY = Replay(Load.parse("constant 50").schedule(10), partitions=3, lines=LineShape(5, 6, 40), close_s=4)


def test_counts_are_those_of_the_lines() -> None:
    truth = truth_by_numpy(REPLAY)
    lines = [REPLAY.lines.line(p, k) for p in range(3) for k in range(REPLAY.rows()[p])]
    assert truth.rows == len(lines) == 200
    assert truth.total == 1200
    assert truth.occurrences == Counter(w for line in lines for w in line.split(" "))


def test_a_truth_has_no_faults_against_itself() -> None:
    assert truth_by_numpy(REPLAY).faults(truth_by_numpy(REPLAY)) == ()


def test_a_lost_row_a_doubled_row_and_a_wrong_row_are_faults() -> None:
    truth = KeyedCounts(3, {"a": 2, "b": 1, "c": 4}, {"a": 5, "b": 6, "c": 7})
    found = counts_of(3, [("a", 1, 9), ("b", 1, 99), ("c", 5, 7), ("d", 1, 1)])
    assert truth.faults(found) == (
        "a: 1 instead of 2",
        "b: 1 as expected, but other rows",
        "c: 5 instead of 4",
        "d: 1 instead of 0",
    )


def test_rows_end_where_the_load_is_closed_or_the_counts_say() -> None:
    assert REPLAY.rows() == (67, 67, 66)
    assert REPLAY.rows([10, 100, 66]) == (10, 67, 66)
    assert replace(REPLAY, close_s=None).rows([1, 2, 3]) == (1, 2, 3)
    with pytest.raises(BadInput, match="no last row"):
        replace(REPLAY, close_s=None).rows()
    with pytest.raises(BadInput, match="2 counts for 3 partitions"):
        REPLAY.rows([1, 2])
