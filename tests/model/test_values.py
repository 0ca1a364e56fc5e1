"""Impossible values are refused, in one sentence that names the field."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.model import (
    Allotment,
    BadInput,
    Demand,
    Edge,
    EdgeTraffic,
    Forecast,
    Instance,
    InstanceMetrics,
    Metrics,
    Node,
    Operator,
    OperatorDemand,
    OperatorForecast,
    Plan,
    Rescale,
    Slot,
    Snapshot,
    Topology,
    Worker,
)

A, B = Operator("a", 1, source=True), Operator("b", 2)
N1 = Node("n1", 100.0)
ONE = Instance("t", "a", 0)

BAD: dict[str, tuple[Callable[[], object], str]] = {
    "cyclic graph": (lambda: Topology("t", (A, B), (Edge("a", "b"), Edge("b", "a"))), "t has a cycle through a, b"),
    "unknown operator": (lambda: Topology("t", (A,), (Edge("a", "x"),)), "edge a->x names the unknown operator 'x'"),
    "duplicate operator": (lambda: Topology("t", (A, A)), "topology t: operators names 'a' twice"),
    "no operators": (lambda: Topology("t", ()), "topology t has no operators"),
    "level 0": (lambda: Topology("t", (A,), level=0), "topology t: level"),
    "minimum above desired": (
        lambda: Topology("t", (A,), desired_nodes=2, minimum_nodes=3),
        "minimum_nodes 3 is above desired_nodes 2",
    ),
    "no instances": (lambda: Operator("a", 0), "operator a: parallelism"),
    "half an instance": (lambda: Operator("a", 1.5), "operator a: parallelism"),  # type: ignore[arg-type]
    "maximum below minimum": (lambda: Operator("a", 1, min_parallelism=3, max_parallelism=2), "operator a: max"),
    "negative declaration": (lambda: Operator("a", 1, cpu_pct=-1.0), "operator a: cpu_pct"),
    "a name with a slash": (lambda: Operator("a/b", 1), "operator.name"),
    "zero slots": (lambda: Node("n1", 100.0, slots=0), "node n1: slots"),
    "no CPU": (lambda: Node("n1", 0.0), "node n1: cpu_pct must be above 0"),
    "CPU that is no number": (lambda: Node("n1", float("nan")), "node n1: cpu_pct"),
    "duplicate node": (lambda: Snapshot(0, 1, (N1, N1), ()), "snapshot.nodes names 'n1' twice"),
    "worker on no node": (
        lambda: Snapshot(0, 1, (N1,), (), (Worker(Slot("n2"), "x", 1),)),
        "worker n2/0 is on the unknown node n2",
    ),
    "a cycle of no length": (lambda: Snapshot(0, 0, (N1,), ()), "snapshot.cycle_s"),
    "negative count": (lambda: Metrics.of({ONE: InstanceMetrics(arrived=-1)}), "metrics: arrived has a negative"),
    "NaN": (lambda: Metrics.of({ONE: InstanceMetrics(cpu_s=float("nan"))}), "metrics: cpu_s has a value that is not"),
    "negative rate": (lambda: EdgeTraffic("t", "a", "b", np.array([[-1.0]])), "traffic t: a->b has a negative"),
    "negative forecast": (lambda: OperatorForecast("t", "a", -1.0, 0.0), "forecast of t/a: arrived"),
    "shares missing": (lambda: OperatorDemand("t", "a", 2, (10.0,)), "demand of t/a: one share for each instance"),
    "negative share": (lambda: OperatorDemand("t", "a", 1, (-1.0,)), "demand of t/a: share"),
    "workers of no node": (
        lambda: Allotment({"t": ("n1",)}, workers={"t": (1, 2)}),
        "allotment of t: one number of workers for each node",
    ),
    "rescaled twice": (lambda: Plan(rescales=(Rescale("t", "a", 1), Rescale("t", "a", 2))), "rescaled twice"),
    "plan's share": (lambda: Plan(shares_pct={ONE: float("inf")}), "plan: share of t/a/0"),
    "plan's limit": (lambda: Plan(limits_pct={ONE: -1.0}), "plan: limit of t/a/0"),
    "no such slot": (lambda: Slot.parse("n1/x"), "'n1/x' names no slot"),
    "no such instance": (lambda: Instance.parse("a-1"), "'a-1' names no instance"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_refused_by_name(case: str) -> None:
    make, words = BAD[case]
    with pytest.raises(BadInput) as error:
        make()
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_true_rate_worked() -> None:
    assert InstanceMetrics(arrived=5000, executed=4200, pending=900, busy_s=8.4).true_rate() == pytest.approx(500)
    assert InstanceMetrics(arrived=5000).true_rate() is None


def test_sums_of_operators() -> None:
    rows = {Instance("t", o, i): InstanceMetrics(arrived=10 * k + i) for k, o in enumerate("ab") for i in range(3)}
    metrics = Metrics.of(rows)
    keys, sums = metrics.operator_sums
    assert keys == (("t", "a"), ("t", "b"))
    assert sums[:, 0].tolist() == [3, 33]
    assert [metrics.of_operator(*key).arrived for key in keys] == [3, 33]
    assert Metrics(()).operator_sums[0] == ()


def test_forecasts_and_demands_are_found_by_name() -> None:
    forecast, demand = OperatorForecast("t", "b", 1.0, 2.0), OperatorDemand("t", "b", 1, (5.0,))
    assert Forecast((OperatorForecast("t", "a", 0.0, 0.0), forecast)).of("t", "b") is forecast
    assert Demand((demand,)).of("t", "b") is demand
    assert Demand((demand,)).of("t", "x") is None


def test_feedback_counts_in_no_order() -> None:
    loop = Topology("t", (A, B), (Edge("a", "b"), Edge("b", "a", feedback=True), Edge("b", "b", feedback=True)))
    assert [o.name for o in loop.order] == ["a", "b"]
    assert loop.parents("a") == ()


@given(st.text(min_size=1))
def test_the_address_of_an_instance_is_read_back_whatever_its_topology_is_called(name: str) -> None:
    instance = Instance(name, "count", 3)
    assert Instance.parse(str(instance)) == instance
    assert Rescale(name, "count", 2).topology == name
    assert list(Topology(name, (Operator("count", 1),), ()).instances()) == [Instance(name, "count", 0)]


def test_a_topology_needs_a_name() -> None:
    with pytest.raises(BadInput, match=r"instance\.topology must be a name that is not empty"):
        Instance("", "count", 0)


@pytest.mark.parametrize("text", ["t/s/" + "9" * 9001, "t/s/" + "1" * 19])
def test_an_index_of_thousands_of_digits_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="names no instance"):
        Instance.parse(text)
