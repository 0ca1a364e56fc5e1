"""Fixed shares, and those taken from another run."""

import pytest

from barograph.model import Demand, Forecast, InstanceMetrics, Operator, OperatorDemand
from barograph.scale import Fixed, Measured, equal_in_total, mean_used, peak_used
from tests.cycles import chain, nodes, remembered, seen, work

DECLARED = chain(Operator("s", 2, source=True, cpu_pct=30.0), Operator("a", 1))
NOW = seen(DECLARED, {"s": work(10), "a": work(10)})


def shares(scaler: Fixed) -> list[tuple[float, ...]]:
    return [o.shares_pct for o in scaler([], NOW, Forecast(())).operators]


def test_given_then_declared_then_all_an_instance_can_use() -> None:
    assert shares(Fixed()) == [(30, 30), (100,)]
    assert shares(Fixed({("t", "a"): 45.0})) == [(30, 30), (45,)]
    assert shares(Fixed({("t", "a"): 45.0}, every_pct=70.0)) == [(70, 70), (45,)]


def test_no_more_than_the_largest_node_gives() -> None:
    now = seen(DECLARED, {"s": work(10)}, cluster=nodes(1, 25))
    assert Fixed()([], now, Forecast(())).operators[0].shares_pct == (25, 25)


def test_from_another_run() -> None:
    """s used 2 s, 6 s and 4 s on two instances in cycles of 10 s; each was allotted 20 for 10 s, then 60 for 30 s.

    A decision at the end of the run has no effect.
    """
    run = []
    for at_s, cpu_s, share in ((10.0, 2.0, 20.0), (20.0, 6.0, 60.0), (50.0, 4.0, 100.0)):
        now = seen(DECLARED, {"s": InstanceMetrics(cpu_s=cpu_s), "a": InstanceMetrics()}, at_s=at_s)
        run.append(remembered(now, Demand((OperatorDemand("t", "s", 2, (share, share)),))))
    assert mean_used(run)["t", "s"] == pytest.approx(20)
    assert peak_used(run)["t", "s"] == pytest.approx(30)
    assert equal_in_total(run) == {("t", "s"): pytest.approx(50)}
    assert equal_in_total(run[:1]) == {("t", "s"): pytest.approx(20)}


def test_measured_is_what_each_instance_used() -> None:
    each = [InstanceMetrics(cpu_s=1.0), InstanceMetrics(cpu_s=3.0)]
    now = seen(DECLARED, {"s": each, "a": InstanceMetrics(cpu_s=5.0)})
    found = Measured()([remembered(now)], now, Forecast(()))
    assert [o.shares_pct for o in found.operators] == [(10, 30), (50,)]
    assert not found.enforced
    declared = Measured(declared_first=True)([], now, Forecast(()))
    assert [o.shares_pct for o in declared.operators] == [(30, 30), (50,)]


def test_undeclared_shares_can_be_given_a_default() -> None:
    assert shares(Fixed(undeclared_pct=10.0)) == [(30, 30), (10,)]
