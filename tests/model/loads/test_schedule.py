import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.model import BadInput, Schedule, Segment
from barograph.model.loads.schedule import NEVER_MS, decode, encode

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "replay.json").read_text())
rates = st.one_of(st.just(0.0), st.floats(0.1, 1e6))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    start_s, segments = 0.0, []
    for _ in range(draw(st.integers(1, 5))):
        end_s = start_s + draw(st.floats(0.01, 1000))
        rate = draw(rates)
        segments.append(Segment(start_s, end_s, rate, draw(st.one_of(st.just(rate), rates))))
        start_s = end_s
    return Schedule(tuple(segments))


def steps(*rates: float) -> Schedule:
    return Schedule(tuple(Segment(10.0 * i, 10.0 * (i + 1), r, r) for i, r in enumerate(rates)))


DUE = {
    "first row at once": (steps(100), 0, 0.0),
    "constant": (steps(100), 50, 0.5),
    "first moment of positive rate": (steps(0, 100), 0, 10.0),
    "rows of a pause wait for its end": (steps(100, 0, 100), 1000, 20.0),
    "last row before a pause": (steps(100, 0, 100), 999, 9.99),
    "the last rate holds": (steps(100, 50), 1550, 21.0),
    "never": (steps(100, 0), 1000, math.inf),
    "ramp up from nothing": (Schedule((Segment(0, 10, 0, 100),)), 125, 5.0),
    "ramp down to nothing": (Schedule((Segment(0, 10, 100, 0),)), 375, 5.0),
}


@pytest.mark.parametrize(("schedule", "row", "due_s"), DUE.values(), ids=DUE)
def test_when_a_row_is_due(schedule: Schedule, row: int, due_s: float) -> None:
    assert schedule.due_s(row) == pytest.approx(due_s, rel=1e-12)


def test_a_row_that_is_never_due() -> None:
    assert steps(100, 0).due_ms(0, 1000, 1) == NEVER_MS
    assert steps(100, 0).rows_due(0, 1, 10**12) == 1000


def test_rates_and_counts() -> None:
    schedule = Schedule((Segment(0, 10, 0, 100), Segment(10, 20, 40, 40)))
    assert [schedule.rate_at(t) for t in (-1, 0, 5, 10, 15, 99)] == [0, 0, 50, 40, 40, 40]
    assert [schedule.rows_by(t) for t in (-1, 0, 5, 10, 20, 30)] == [0, 0, 125, 500, 900, 1300]


def test_a_closed_load_has_rate_times_seconds_rows() -> None:
    assert [steps(1000).rows_until(p, 3, 60) for p in range(3)] == [20000, 20000, 20000]


@settings(max_examples=200)
@given(schedules(), st.floats(0, 3000))
def test_due_times_undo_counts(schedule: Schedule, t_s: float) -> None:
    rows = schedule.rows_by(t_s)
    if rows >= 1:
        assert schedule.due_s(math.floor(rows * (1 - 1e-9))) <= t_s * (1 + 1e-6)
    assert schedule.due_s(math.ceil(rows * (1 + 1e-9)) + 1) >= t_s * (1 - 1e-6)


@settings(max_examples=200)
@given(schedules(), st.integers(1, 7), st.integers(0, 3_000_000))
def test_counts_are_exactly_the_rows_due(schedule: Schedule, partitions: int, t_ms: int) -> None:
    for partition in range(partitions):
        count = schedule.rows_due(partition, partitions, t_ms)
        assert count == 0 or schedule.due_ms(partition, count - 1, partitions) <= t_ms
        assert schedule.due_ms(partition, count, partitions) > t_ms


@settings(max_examples=50)
@given(schedules(), st.integers(0, 10**6))
def test_due_times_never_go_back(schedule: Schedule, first: int) -> None:
    due = [schedule.due_s(g) for g in range(first, first + 50)]
    assert due == sorted(due)


@given(schedules())
def test_text_keeps_every_digit(schedule: Schedule) -> None:
    assert decode(encode(schedule.segments)) == schedule.segments


@pytest.mark.parametrize(
    "text", ["", "0:1:2", "0:1:x:2", "0:1:2:-2", "1:2:3:3", "0:1:2:2;2:3:1:1", "0:0:1:1", "0:1:nan:1"]
)
def test_bad_text_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        decode(text)


@pytest.mark.parametrize("v", VECTORS["due"], ids=lambda v: f"{v['segments'][:40]} {v['partition']}/{v['k']}")
def test_due_times_are_those_of_the_vectors(v: dict[str, Any]) -> None:
    assert Schedule(decode(v["segments"])).due_ms(v["partition"], v["k"], v["partitions"]) == v["due_ms"]
