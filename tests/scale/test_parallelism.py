"""AUTOSCALE: the worked numbers, the decision matrix, the grace period."""

import pytest

from barograph.forecast import NextWindow
from barograph.model import Demand, Operator, OperatorDemand, Plan, Rescale, Snapshot
from barograph.scale import Combine, Parallelism
from barograph.scale.activity import Activity, Change, Thresholds, capacity_drift, decision, new_degree
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
    (Activity.LOW, False, Change.IN),
    (Activity.LOW, True, Change.NONE),
    (Activity.MEDIUM, False, Change.NONE),
    (Activity.MEDIUM, True, Change.NONE),
    (Activity.HIGH, False, Change.NONE),
    (Activity.HIGH, True, Change.OUT),
    (Activity.CRITICAL, False, Change.OUT),
    (Activity.CRITICAL, True, Change.OUT),
]


@pytest.mark.parametrize(("activity", "rising", "expected"), MATRIX)
def test_decision_matrix(activity: Activity, rising: bool, expected: Change) -> None:
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


def test_ours_aims_at_theta_max() -> None:
    assert new_degree(8, 0.125, False, 1, 8, THETA) == 1  # as published: at once "high"
    assert new_degree(8, 0.125, False, 1, 8, THETA, aim_at_theta_max=True) == 2


PARENT = Operator("parent", 1, max_parallelism=8)
CHILD = Operator("child", 2, max_parallelism=8)


def window(child_rising: bool = False) -> list[Snapshot]:
    """The worked window: parent 80 ms a row, 100 .. 150 rows and 90 pending; child 200 ms a row, 500 in the next."""
    topology = chain(Operator("source", 1, source=True), PARENT, CHILD)
    found = []
    for k in range(6):
        rows = 100.0 + 10 * k
        done = 125.0  # what the parent can do; SF 1
        child = (500 - 36) / 6 + k - 2.5 if child_rising else 500 / 6
        numbers = {
            "source": work(rows, ms=0.1),
            "parent": work(rows, done, ms=80, pending=90.0),
            "child": work(child, 50.0, out=0, ms=200),
        }
        found.append(seen(topology, numbers, at_s=10.0 * k))
    return found


def degrees(snapshots: list[Snapshot], scaler: Parallelism) -> dict[str, OperatorDemand]:
    *earlier, now = snapshots
    history = [remembered(s) for s in earlier]
    found = scaler(history, now, NextWindow()(history, now, 1))
    return {o.operator: o for o in found.operators}


def test_parent_worked() -> None:
    found = degrees(window(), Parallelism())["parent"]
    assert found.reason is not None
    assert found.reason.numbers["input_rows"] == pytest.approx(1200)
    assert found.reason.numbers["capacity_rows"] == pytest.approx(750)
    assert found.reason.numbers["lal"] == pytest.approx(1.6)
    assert found.parallelism == 2


GLOBAL = {
    "max": (Parallelism(), False, 1.25, 3),
    "min, not rising": (Parallelism(combine=Combine.MIN), False, 0.8333, 2),
    "min, rising": (Parallelism(combine=Combine.MIN), True, 0.8333, 3),
    "ours: the output follows the new degree": (Parallelism(follow_new_degree=True), False, 2.0, 4),
}


@pytest.mark.parametrize("case", GLOBAL)
def test_child_worked(case: str) -> None:
    scaler, rising, gal, degree = GLOBAL[case]
    found = degrees(window(rising), scaler)["child"]
    assert found.reason is not None
    assert found.reason.numbers["gal"] == pytest.approx(gal, abs=1e-3)
    assert found.parallelism == degree


def test_sources_are_left_alone_unless_asked() -> None:
    topology = chain(Operator("s", 1, source=True, max_parallelism=8))
    run = [seen(topology, {"s": work(100.0, 60.0, ms=160, pending=400.0)}) for _ in range(6)]
    assert degrees(run, Parallelism())["s"].parallelism == 1
    assert degrees(run, Parallelism(scale_sources=True))["s"].parallelism > 1


def test_no_decision_before_a_whole_window_was_seen() -> None:
    assert degrees(window()[:5], Parallelism())["parent"].parallelism == 1


def test_grace_period_of_one_window_for_the_whole_topology() -> None:
    run = window()
    order = Plan(rescales=(Rescale("t", "source", 2),))
    *earlier, now = run
    for age in range(1, 8):
        history = [remembered(run[0])] * 3 + [remembered(s) for s in earlier]
        history[-age] = remembered(history[-age].snapshot, plan=order)
        found = Parallelism()(history, now, NextWindow()(history, now, 1)).of("t", "parent")
        assert found is not None
        assert (found.parallelism == 1) == (age <= 5), f"{age} cycles after the order"


def test_cpu_is_reckoned_with_but_not_enforced() -> None:
    now = seen(chain(Operator("s", 2, source=True, cpu_pct=30.0)), {"s": work(10)})
    found = Parallelism()([], now, NextWindow()([], now, 1))
    assert found == Demand(found.operators, enforced=False)
    assert found.operators[0].shares_pct == (30, 30)
