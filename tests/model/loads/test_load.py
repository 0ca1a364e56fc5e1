import math
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.model import BadInput, Load, Segment

SHAPES = {
    "constant": ("constant 2000", 90, [(0, 90, 2000, 2000)]),
    "steps": ("steps 0s=500 60s=2500 2m=500", 180, [(0, 60, 500, 500), (60, 120, 2500, 2500), (120, 180, 500, 500)]),
    "steps cut at the horizon": ("steps 0s=500 60s=2500", 30, [(0, 30, 500, 500)]),
    "steps from later on": ("steps 10s=500", 30, [(0, 10, 0, 0), (10, 30, 500, 500)]),
    "ramp": ("ramp 0s=500 60s=2500", 90, [(0, 60, 500, 2500), (60, 90, 2500, 2500)]),
    "ramp cut at the horizon": ("ramp 0s=500 60s=2500", 30, [(0, 30, 500, 1500)]),
    "onoff": (
        "onoff high=80 low=40 share=0.25 period=60s",
        90,
        [(0, 15, 80, 80), (15, 60, 40, 40), (60, 75, 80, 80), (75, 90, 40, 40)],
    ),
    "onoff always high": ("onoff high=80 low=40 share=1 period=60s", 60, [(0, 60, 80, 80)]),
    "batches": (
        "batches rows=60 every=10s count=2 within=2s",
        30,
        [(0, 2, 30, 30), (2, 10, 0, 0), (10, 12, 30, 30), (12, 20, 0, 0), (20, 30, 0, 0)],
    ),
    "batches without a pause": ("batches rows=60 every=2s count=1 within=2s", 3, [(0, 2, 30, 30), (2, 3, 0, 0)]),
    "times": (
        "steps 500ms=1 0.5m=2 1h=3",
        3601,
        [(0, 0.5, 0, 0), (0.5, 30, 1, 1), (30, 3600, 2, 2), (3600, 3601, 3, 3)],
    ),
}


@pytest.mark.parametrize(("text", "until_s", "expected"), SHAPES.values(), ids=SHAPES)
def test_a_shape_becomes_segments(text: str, until_s: float, expected: list[tuple[float, ...]]) -> None:
    assert Load.parse(text).segments(until_s) == tuple(Segment(*(float(v) for v in row)) for row in expected)


def test_random_is_the_same_everywhere_and_for_every_horizon() -> None:
    load = Load.parse("random 1..25 x200 every 10s seed=7")
    rates = [s.rate_start for s in load.segments(100)]
    # splitmix64 of seed 7 starts 0x63cbe1e459320dd7: its top share of 25 is 9, so the first rate is (1 + 9) * 200.
    assert rates[0] == 2000
    assert load.segments(1000)[:10] == load.segments(100)
    long_run = [s.rate_start / 200 for s in load.segments(10 * 5000)]
    assert set(long_run) == set(range(1, 26))
    assert math.isclose(sum(long_run) / len(long_run), 13, rel_tol=0.03)
    assert rates != [s.rate_start for s in Load.parse("random 1..25 x200 every 10s seed=8").segments(100)]


def test_noise_changes_the_rate_within_its_bounds_and_not_the_mean() -> None:
    load = Load.parse("steps 0s=100 12s=200 noise 0.1 every 5s seed=7")
    first = load.segments(20)
    assert [(s.start_s, s.end_s) for s in first] == [(0, 5), (5, 10), (10, 12), (12, 15), (15, 20)]
    # splitmix64 of seed 7 starts 0x63cbe1e459320dd7, 0.3898 of the whole range: the first factor is 1 - 0.1 * 0.2204
    assert first[0].rate_start == first[0].rate_end
    assert math.isclose(first[0].rate_start, 97.796, rel_tol=1e-5)
    assert math.isclose(first[3].rate_start, 2 * first[2].rate_start)  # one draw for 10 s to 15 s
    assert load.segments(1000)[:5] == first
    factors = [s.rate_start / 200 for s in load.segments(5 * 4000)[4:]]
    assert 0.9 <= min(factors) < 0.91 and 1.09 < max(factors) <= 1.1
    assert math.isclose(sum(factors) / len(factors), 1.0, rel_tol=0.003)
    assert first != Load.parse("steps 0s=100 12s=200 noise 0.1 every 5s seed=8").segments(20)


def test_noise_of_nothing_is_the_shape_itself() -> None:
    for text, until_s, _ in SHAPES.values():
        plain, noisy = (Load.parse(t).schedule(until_s) for t in (text, f"{text} noise 0 every 7s seed=1"))
        assert all(math.isclose(noisy.rows_by(t), plain.rows_by(t), abs_tol=1e-6) for t in range(0, int(until_s), 3))


def test_a_trace_is_steps_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a day.csv"
    file.write_text("# measured\nseconds, rate\n0, 100\n\n30,200 # noon\n")
    assert Load.parse(f"trace {file}").segments(60) == (Segment(0, 30, 100, 100), Segment(30, 60, 200, 200))


TRACE_ERRORS = {
    "not two fields": ("0,1\n5\n", "t.csv, line 2: '5' is not seconds,rate"),
    "a second header": ("s,r\nx,y\n", "t.csv, line 2: 'x,y' is not seconds,rate"),
    "a bad rate": ("0,-1\n", "t.csv, line 1: '-1' is not a rate"),
    "back in time": ("s,r\n0,1\n0,2\n", "t.csv, line 3: 0 does not come after"),
    "nothing": ("s,r\n", "t.csv has no line"),
}


@pytest.mark.parametrize(("content", "sentence"), TRACE_ERRORS.values(), ids=TRACE_ERRORS)
def test_a_bad_trace_names_file_and_line(content: str, sentence: str) -> None:
    with pytest.raises(BadInput) as error:
        Load.parse("trace t.csv", read=lambda _: content)
    assert sentence in str(error.value)


ERRORS = {
    "empty": ("", 1, "the shape"),
    "unknown shape": ("wave 3", 1, "'wave'"),
    "no rate": ("constant", 9, "the rate is missing"),
    "bad rate": ("constant  20x", 11, "'20x'"),
    "negative rate": ("constant -1", 10, "'-1'"),
    "infinite rate": ("constant 1e99", 10, "'1e99'"),
    "too many words": ("constant 1 2", 12, "'2'"),
    "no point": ("steps", 6, "a point"),
    "not a point": ("steps 0s=1 60s", 12, "'60s'"),
    "bad time": ("ramp 0s=1 60x=2", 11, "'60x'"),
    "bad rate in a point": ("ramp 0s=1 60s=b", 15, "'b'"),
    "back in time": ("steps 0s=1 60s=2 1m=3", 18, "'1m'"),
    "onoff without low": ("onoff high=80 share=1 period=60s", 15, "low="),
    "bad share": ("onoff high=80 low=40 share=1.5 period=60s", 28, "'1.5'"),
    "no period": ("onoff high=80 low=40 share=1 period=0s", 37, "'0s'"),
    "bad range": ("random 25..1 x200 every 10s seed=7", 8, "'25..1'"),
    "a range of thousands of digits": (f"random 1..{'9' * 5000} x1 every 10s seed=7", 8, "not a range"),
    "a seed of thousands of digits": (f"random 1..2 x1 every 10s seed={'9' * 5000}", 31, "999"),
    "no factor": ("random 1..2 every 10s seed=7", 13, "'every'"),
    "too large a factor": ("random 1..20 x1e8 every 10s seed=7", 14, "above 1e+09"),
    "no every": ("random 1..2 x1 10s seed=7", 16, "'every'"),
    "bad seed": ("random 1..2 x1 every 10s seed=-7", 31, "'-7'"),
    "no rows in a batch": ("batches rows=0 every=10s count=2 within=1s", 14, "'0' is not a count"),
    "a batch longer than its period": ("batches rows=5 every=1s count=2 within=2s", 40, "longer than its period"),
    "too many rows at once": ("batches rows=900000000 every=1s count=2 within=1ms", 14, "above 1e+09"),
    "no part of noise": ("constant 1 noise", 17, "the part by which rates are off"),
    "bad part of noise": ("constant 1 noise 5% every 5s seed=1", 18, "'5%'"),
    "more noise than there is": ("constant 1 noise 1.5 every 5s seed=1", 18, "'1.5'"),
    "too large a rate with noise": ("ramp 0s=1 9s=9.9e8 noise 0.2 every 5s seed=1", 26, "above 1e+09"),
    "noise without every": ("onoff high=8 low=4 share=1 period=6s noise 0.1 5s seed=1", 48, "'every'"),
    "noise without a time": ("constant 1 noise 0.1 every", 27, "the time between changes is missing"),
    "noise that never changes": ("constant 1 noise 0.1 every 0s seed=1", 28, "'0s'"),
    "noise without a seed": ("random 1..2 x1 every 9s seed=7 noise 0.1 every 5s", 50, "seed= is missing"),
    "noise twice": ("constant 1 noise 0 every 5s seed=1 noise 0 every 5s seed=1", 36, "'noise'"),
    "noise before the points": ("steps noise 0.1 every 5s seed=1", 7, "'noise'"),
    "no file": ("trace", 6, "the file is missing"),
    "no such file": ("trace no/such/file", 7, "cannot be read"),
}


@pytest.mark.parametrize(("text", "column", "piece"), ERRORS.values(), ids=ERRORS)
def test_a_bad_shape_says_where(text: str, column: int, piece: str) -> None:
    with pytest.raises(BadInput) as error:
        Load.parse(text)
    assert f"column {column}: " in str(error.value)
    assert piece in str(error.value)
    assert "\n" not in str(error.value)


def test_too_many_pieces_are_refused() -> None:
    with pytest.raises(BadInput, match="more than 100000 pieces"):
        Load.parse("onoff high=1 low=0 share=0.5 period=1ms").segments(3600)


@settings(deadline=None)
@given(
    st.sampled_from([text for text, _, _ in SHAPES.values()]),
    st.sampled_from(["", " noise 0.3 every 7s seed=3", " noise 1 every 13s seed=4"]),
    st.floats(0.001, 10_000),
)
def test_segments_have_no_gap_and_end_at_the_horizon(text: str, noise: str, until_s: float) -> None:
    schedule = Load.parse(text + noise).schedule(until_s)
    assert schedule.end_s == until_s


@pytest.mark.parametrize("text", ["constant 80 noise 0.05 every 1ms seed=7", "random 1..25 x200 every 1ms seed=7"])
def test_too_many_pieces_are_refused_before_any_is_made(text: str) -> None:
    began = time.process_time()
    with pytest.raises(BadInput, match="more than 100000 pieces"):
        Load.parse(text).schedule(600.0)
    assert time.process_time() - began < 0.2


def test_noise_with_a_period_longer_than_any_run() -> None:
    assert Load.parse("steps 0s=100 noise 0.5 every 1e299h seed=7").schedule(10.0).rows_by(10.0) > 0
