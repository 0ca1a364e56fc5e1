"""AUTOSCALE: the worked numbers, the decision matrix, the grace period, backlog at the source."""

from dataclasses import replace

import pytest

from barograph.forecast import NextWindow
from barograph.model import (
    Cycle,
    Demand,
    Metrics,
    Operator,
    OperatorDemand,
    Outcome,
    Plan,
    ReasonCode,
    Rescale,
    Snapshot,
)
from barograph.scale import Combine, Parallelism
from barograph.scale.activity import Activity, ScaleDirection, Thresholds, capacity_drift, decision, new_degree
from tests.cycles import chain, remembered, seen, work

THETA = Thresholds()

DEGREES = {
    "low, flat": (4, 0.3, False, 8, 2),
    "low, rising": (4, 0.3, True, 8, 4),
    "medium, rising": (4, 0.8, True, 8, 4),
    "high, rising": (3, 1.0, True, 8, 4),
    "high, flat": (3, 1.0, False, 8, 3),
    "critical at the maximum": (7, 1.3, False, 8, 8),
    "just critical": (4, 1.0001, False, 8, 5),
    "never below 1": (3, 0.0, False, 8, 1),
}


@pytest.mark.parametrize("case", DEGREES)
def test_degree_worked(case: str) -> None:
    degree, gal, rising, most, expected = DEGREES[case]
    assert new_degree(degree, gal, rising, 1, most, THETA) == expected


def test_a_minimum_is_kept() -> None:
    assert new_degree(6, 0.1, False, 3, 8, THETA) == 3


MATRIX = [
    (Activity.LOW, False, ScaleDirection.IN),
    (Activity.LOW, True, ScaleDirection.NONE),
    (Activity.MEDIUM, False, ScaleDirection.NONE),
    (Activity.MEDIUM, True, ScaleDirection.NONE),
    (Activity.HIGH, False, ScaleDirection.NONE),
    (Activity.HIGH, True, ScaleDirection.OUT),
    (Activity.CRITICAL, False, ScaleDirection.OUT),
    (Activity.CRITICAL, True, ScaleDirection.OUT),
]


@pytest.mark.parametrize(("activity", "rising", "expected"), MATRIX)
def test_decision_matrix(activity: Activity, rising: bool, expected: ScaleDirection) -> None:
    assert decision(activity, rising) is expected


@pytest.mark.parametrize(
    ("level", "expected"),
    [(0, "low"), (0.3, "low"), (0.31, "medium"), (0.8, "medium"), (0.81, "high"), (1, "high"), (1.01, "critical")],
)
def test_activity_levels(level: float, expected: str) -> None:
    assert THETA.activity(level) == expected


def test_drift_worked() -> None:
    assert capacity_drift([1000, 900, 800, 700], 1) == pytest.approx(-100)
    assert capacity_drift([700, 800, 900, 1000], 1) == pytest.approx(100)
    assert capacity_drift([1000, 900], 1) == 0
    assert capacity_drift([1000, 500, 100], 2) == pytest.approx(-0.2 * 200)


def test_with_the_option_operators_are_sized_for_theta_max() -> None:
    assert new_degree(8, 0.125, False, 1, 8, THETA) == 1  # as published: at once "high"
    assert new_degree(8, 0.125, False, 1, 8, THETA, aim_at_theta_max=True) == 2


PARENT = Operator("parent", 1, max_parallelism=8)
CHILD = Operator("child", 2, max_parallelism=8)


def window(child_rising: bool = False, child_ms: float = 200.0) -> list[Snapshot]:
    """The worked window: parent 80 ms a row, 100 .. 150 rows and 90 pending; child 200 ms a row, 500 in the next."""
    topology = chain(Operator("source", 1, source=True), PARENT, CHILD)
    found = []
    for k in range(6):
        rows = 100.0 + 10 * k
        done = 125.0  # what the parent can do; SF 1
        child = (500 - 6) / 6 + k - 2.5 if child_rising else 500 / 6
        numbers = {
            "source": work(rows, ms=0.1),
            "parent": work(rows, done, ms=80, pending=90.0),
            "child": work(child, 50.0, out=0, ms=child_ms),
        }
        found.append(seen(topology, numbers, at_s=100.0 + 10 * k))
    return found


def degrees(snapshots: list[Snapshot], scaler: Parallelism) -> dict[str, OperatorDemand]:
    *earlier, now = snapshots
    history = [remembered(s) for s in earlier]
    found = scaler(history, now, NextWindow()(history, now, 1))
    return {o.operator: o for o in found.operators}


def test_parent_worked() -> None:
    found = degrees(window(), Parallelism())["parent"]
    assert found.reason is not None
    assert found.reason.numbers["input_rows"] == pytest.approx(900)
    assert found.reason.numbers["capacity_rows"] == pytest.approx(750)
    assert found.reason.numbers["lal"] == pytest.approx(1.2)
    assert found.parallelism == 2


GLOBAL = {
    "max": (Parallelism(), False, 1.25, 3),
    "min, not rising": (Parallelism(combine=Combine.MIN), False, 0.8333, 2),
    "min, rising": (Parallelism(combine=Combine.MIN), True, 0.8333, 3),
}


@pytest.mark.parametrize("case", GLOBAL)
def test_child_worked(case: str) -> None:
    scaler, rising, gal, degree = GLOBAL[case]
    found = degrees(window(rising), scaler)["child"]
    assert found.reason is not None
    assert found.reason.numbers["gal"] == pytest.approx(gal, abs=1e-3)
    assert found.parallelism == degree


def test_with_the_option_children_follow_the_parents_new_degree() -> None:
    """A child of capacity 500: what the parent can do now is 750, what it can do with its new degree is 900."""
    for scaler, gal, degree in ((Parallelism(), 1.5, 3), (Parallelism(follow_new_degree=True), 1.8, 4)):
        found = degrees(window(child_ms=240.0), scaler)["child"]
        assert found.reason is not None
        assert found.reason.numbers["gal"] == pytest.approx(gal)
        assert found.parallelism == degree


def test_sources_are_not_scaled_unless_the_option_says_so() -> None:
    topology = chain(Operator("s", 1, source=True, max_parallelism=8))
    run = [seen(topology, {"s": work(100.0, 60.0, ms=160, pending=400.0)}, at_s=10.0 * k) for k in range(6)]
    assert degrees(run, Parallelism())["s"].parallelism == 1
    assert degrees(run, Parallelism(scale_sources=True))["s"].parallelism > 1


def test_no_decision_before_a_whole_window_was_measured() -> None:
    assert degrees(window()[:5], Parallelism())["parent"].parallelism == 1


def test_the_snapshot_before_the_first_cycle_is_no_sample() -> None:
    """Five cycles and the empty snapshot before them are no window of six."""
    run = window()
    empty = replace(run[0], metrics=Metrics(()), at_s=run[1].at_s - 10.0)
    found = degrees([empty, *run[1:]], Parallelism())["parent"]
    assert found.parallelism == 1
    assert found.reason is not None
    assert found.reason.code is ReasonCode.WINDOW_NOT_FULL
    assert found.reason.why == "50 of the 60 s of a window have been measured"
    assert degrees([replace(empty, at_s=90.0), *run], Parallelism())["parent"].parallelism == 2


def test_grace_period_of_one_window_for_the_whole_topology() -> None:
    run = window()
    order = Plan(rescales=(Rescale("t", "source", 2),))
    *earlier, now = run
    for age in range(1, 8):
        before = [replace(run[0], at_s=100.0 - 10 * k) for k in (3, 2, 1)]
        history = [remembered(s) for s in (*before, *earlier)]
        history[-age] = remembered(history[-age].snapshot, plan=order)
        found = Parallelism()(history, now, NextWindow()(history, now, 1)).of("t", "parent")
        assert found is not None
        assert (found.parallelism == 1) == (age <= 5), f"{age} cycles after the order"


def quiet(at_s: float, cycle_s: float = 10.0, degree: int = 2) -> Snapshot:
    """The sink could do with one instance: a tenth of what two can do arrives."""
    topology = chain(Operator("source", 1, source=True), Operator("sink", degree, max_parallelism=8))
    numbers = {"source": work(2.5 * cycle_s, ms=0.1), "sink": work(2.5 * cycle_s, out=0, ms=80)}
    return seen(topology, numbers, at_s=at_s, cycle_s=cycle_s)


def after_a_slow_change(cycles_since: int) -> list[Cycle]:
    """Seven cycles, then an order that takes 55 s to commit and makes its cycle 60 s long, then cycles of 10 s."""
    history = [remembered(quiet(10.0 * k, degree=1)) for k in range(6)]
    order = remembered(quiet(60.0, degree=1), plan=Plan(rescales=(Rescale("t", "sink", 2),)))
    history.append(replace(order, outcome=Outcome(done=("scale",), order_to_commit_s=55.0)))
    return history + [remembered(quiet(120.0 + 10.0 * k, 60.0 if k == 0 else 10.0)) for k in range(cycles_since + 1)]


@pytest.mark.parametrize(("cycles_since", "degree"), [(0, 2), (1, 2), (5, 2), (6, 1)])
def test_a_long_cycle_of_a_slow_change_does_not_shorten_the_grace_period(cycles_since: int, degree: int) -> None:
    """The change takes effect at 115 s, so nothing is decided before 175 s; the next cycle ends at 180 s."""
    *history, last = after_a_slow_change(cycles_since)
    now = last.snapshot
    found = Parallelism()(history, now, NextWindow()(history, now, 1)).of("t", "sink")
    assert found is not None
    assert (found.parallelism, found.wanted) == (degree, 1)


def test_a_manual_change_starts_a_grace_period_when_it_is_first_observed() -> None:
    history = [remembered(quiet(10.0 * k, degree=8)) for k in range(7)]
    for k in range(7):
        now = quiet(70.0 + 10.0 * k)
        found = Parallelism()(history, now, NextWindow()(history, now, 1)).of("t", "sink")
        assert found is not None
        assert found.parallelism == (2 if k < 6 else 1), f"{k} cycles after the change was seen"
        history.append(remembered(now))


def test_cycles_of_unequal_length_decide_as_equal_ones_do() -> None:
    """The same flat load, once in cycles of 10 s and once with one of 12 s among those of 2 s."""
    even = [quiet(10.0 * k) for k in range(1, 8)]
    lengths_s = [2.0] * 20 + [12.0] + [2.0] * 9
    uneven = [quiet(sum(lengths_s[: k + 1]), length) for k, length in enumerate(lengths_s)]
    for run in (even, uneven):
        found = degrees(run, Parallelism())["sink"]
        assert found.reason is not None
        assert found.reason.why == "activity is low, load is not rising"
        assert found.reason.numbers["input_rows"] == pytest.approx(150)
        assert found.reason.numbers["capacity_rows"] == pytest.approx(1500)
        assert found.parallelism == 1


def congested(backlog: float, combine: Combine = Combine.MAX) -> dict[str, OperatorDemand]:
    """80 rows a second, a sink of one instance that does 12.5, and the rest waiting at the source."""
    topology = chain(
        Operator("source", 1, source=True, max_parallelism=1),
        Operator("intermediate", 1, max_parallelism=8),
        Operator("sink", 1, max_parallelism=8),
    )
    numbers = {
        "source": work(800.0, 125.0, ms=0.5, pending=backlog),
        "intermediate": work(125.0, ms=2),
        "sink": work(125.0, out=0, ms=80, pending=2.0),
    }
    run = [seen(topology, numbers, at_s=10.0 * k) for k in range(6)]
    return degrees(run, Parallelism(combine=combine))


@pytest.mark.parametrize("combine", Combine)
def test_backlog_at_the_source_makes_the_slow_operator_critical(combine: Combine) -> None:
    found = congested(1200.0, combine)
    sink, intermediate = found["sink"], found["intermediate"]
    assert sink.reason is not None and intermediate.reason is not None
    assert sink.reason.numbers["lal"] == pytest.approx((4800 + 1200) / 750)
    assert sink.parallelism == 8
    assert intermediate.reason.numbers["lal"] == pytest.approx((4800 + 1200) / 30_000)
    assert intermediate.parallelism == 1


def test_rows_that_just_became_due_are_no_backlog() -> None:
    """A source that has fewer rows to read than it read in the sample is not held back."""
    sink = congested(100.0)["sink"]
    assert sink.reason is not None
    assert sink.reason.numbers["lal"] == pytest.approx(752 / 750)
    assert sink.parallelism == 2


def test_cpu_is_estimated_but_not_enforced() -> None:
    now = seen(chain(Operator("s", 2, source=True, cpu_pct=30.0)), {"s": work(10)})
    found = Parallelism()([], now, NextWindow()([], now, 1))
    assert found == Demand(found.operators, enforced=False)
    assert found.operators[0].shares_pct == (30, 30)
    undeclared = seen(chain(Operator("s", 2, source=True)), {"s": work(10)})
    assert not Parallelism()([], undeclared, NextWindow()([], undeclared, 1)).reserved  # an estimate reserves nothing
