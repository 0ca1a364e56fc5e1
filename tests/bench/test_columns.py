"""Bars of the papers' comparison, and the explanations if the two engines differ."""

from dataclasses import replace

import pytest
from bench._columns import PARALLELISM, Column, bars, column
from bench._on_sim import agreement, closed, exponent, work_of
from bench.regular import load
from tests.cycles import remembered, seen

from barograph.model import InstanceMetrics, Load
from barograph.workloads import wordcount

GOOD = Column("adaptive", 0, 20.0, 90.0, 900.0, 60.0, 40.0, 2.5, 3, 0, 0.5, 0, 0, 0)
FIVE = {
    "adaptive": GOOD,
    "liu": replace(GOOD, policy="liu", mean_ms=300.0),
    "fixed-equal": replace(GOOD, policy="fixed-equal", mean_ms=600.0),
    "fixed-peak": replace(GOOD, policy="fixed-peak", mean_ms=15.0, reserved_core_s=100.0),
    "spark": replace(GOOD, policy="spark", mean_ms=12.0, reserved_core_s=None, moves=None),
}


def missed(changed: dict[str, Column]) -> list[str]:
    return [b.name for b in bars({**FIVE, **changed}) if not b.met]


def test_all_bars_met() -> None:
    assert missed({}) == []


MISSED = {
    "late": ({"adaptive": replace(GOOD, late_rows=1)}, "late rows"),
    "slow": ({"fixed-peak": replace(FIVE["fixed-peak"], mean_ms=13.0)}, "adaptive / fixed-peak"),
    "no better than equal shares": ({"fixed-equal": replace(GOOD, mean_ms=500.0)}, "fixed-equal / adaptive"),
    "much CPU": ({"adaptive": replace(GOOD, reserved_core_s=80.0)}, "core-seconds"),
    "a lost row": ({"liu": replace(GOOD, lost=1)}, "counted once"),
    "a row counted twice": ({"spark": replace(FIVE["spark"], counted_twice=1)}, "counted once"),
}


@pytest.mark.parametrize("case", MISSED)
def test_a_bar_that_is_missed(case: str) -> None:
    changed, name = MISSED[case]
    (found,) = missed(changed)
    assert name in found


def test_a_column_of_a_report() -> None:
    report = {
        "rows": {"late": 3, "lost": 0, "counted_twice": 0},
        "latency_ms": {"due": {"mean": 5.0, "p99": 9.0, "max": 11.0}},
        "cpu_core_s": {"reserved": None, "used": 7.0},
        "nodes_used": {"mean": 2.0, "max": 3},
        "moves": None, "rescales": 0, "longest_pause_s": 0.4, "lines": {"undrained": 2},
    }  # fmt: skip
    found = column("spark", report)
    assert (found.late_rows, found.mean_ms, found.reserved_core_s, found.moves) == (3 + 2 * 8, 5.0, None, None)
    assert found.exact


def test_engines_that_agree_and_that_do_not() -> None:
    same = [a for a in agreement(FIVE, FIVE) if "spark: core" not in a.question]
    assert len(same) > 5
    assert [a for a in same if not a.agree] == []
    other = {**FIVE, "adaptive": replace(GOOD, mean_ms=900.0, reserved_core_s=67.0)}
    differ = {a.question: a.why for a in agreement(FIVE, other) if not a.agree}
    assert "policies by mean complete time" in differ
    assert differ["adaptive: mean ms"]
    assert differ["adaptive: core-s reserved"]


def test_the_load_goes_up_and_down_twice_and_ends() -> None:
    shape = load(240.0)
    schedule = Load.parse(shape).schedule(240.0)
    assert [round(schedule.rate_at(s)) for s in (0, 60, 120, 180)] == [240, 1200, 240, 1200]
    ended = closed(shape, 240.0).schedule(400.0)
    assert ended.rate_at(300.0) == 0
    assert ended.rows_by(400.0) == pytest.approx(schedule.rows_by(240.0), rel=1e-3)


def test_what_the_simulator_takes_from_a_run() -> None:
    topology = wordcount.topology(PARALLELISM)
    counted = [InstanceMetrics(executed=n, cpu_s=n * 5e-5) for n in (100.0, 200.0, 100.0)]
    now = seen(topology, {"source": InstanceMetrics(executed=50, cpu_s=0.002),
                          "split": InstanceMetrics(executed=50, cpu_s=0.02), "count": counted})  # fmt: skip
    cost_s, parts = work_of([remembered(now), remembered(now)])
    assert cost_s == pytest.approx({"source": 4e-5, "split": 4e-4, "count": 5e-5})
    assert parts == (0.25, 0.5, 0.25)


def test_the_exponent_gives_the_largest_part() -> None:
    s = exponent((0.25, 0.5, 0.25))
    assert 1 / (1 + 2**-s + 3**-s) == pytest.approx(0.5)
    assert exponent((1 / 3, 1 / 3, 1 / 3)) == pytest.approx(0, abs=1e-6)
