"""The figures of a run, in numbers worked out by hand, for steered and unsteered runs alike."""

from dataclasses import replace

import numpy as np
import pytest
from tests.cycles import chain, nodes, remembered, seen, work

from barograph.experiments.figures.cpu_in_force import CpuInForce
from barograph.experiments.figures.run_meter import UNKNOWN, Look, Metered, RunMeter, metered
from barograph.model import (
    Cycle,
    EdgeTraffic,
    Forecast,
    Instance,
    MigrationMode,
    Operator,
    OperatorForecast,
    Outcome,
    Placement,
    Plan,
    Refusal,
    RefusalCode,
    Slot,
)

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("a", 2))
S0, A0, A1 = (Instance("t", o, i) for o, i in (("s", 0), ("a", 0), ("a", 1)))
HERE = Placement({S0: Slot("n1", 0), A0: Slot("n1", 1), A1: Slot("n2", 0)})
TRAFFIC = EdgeTraffic("t", "s", "a", np.array([[40.0, 60.0]]))
LOW = {S0: 10.0, A0: 20.0, A1: 30.0}
HIGH = {S0: 20.0, A0: 30.0, A1: 60.0}
EXPECTED = Forecast((OperatorForecast("t", "s", 500.0, 500.0),))


def cycle(plan: Plan, ok: bool = True, cycle_s: float = 2.0) -> Cycle:
    now = seen(
        TOPOLOGY, {"s": work(100), "a": work(200)}, cluster=nodes(2, 60, slots=2), placement=HERE, traffic=(TRAFFIC,),
        cycle_s=cycle_s,
    )  # fmt: skip
    outcome = Outcome(refused=() if ok else (Refusal("the plan", RefusalCode.STALE, "no"),))
    return replace(remembered(now, plan=plan), outcome=outcome, forecast=EXPECTED)


def plan(shares: dict[Instance, float], limits: dict[Instance, float], **more: object) -> Plan:
    return Plan(shares_pct=shares, limits_pct=limits, **more)  # type: ignore[arg-type]  # fields of a plan


BOTH, NONE = plan(LOW, HIGH), plan({}, {})
CASES = {
    "nothing is held: a core each, a node no more than it has": ([(0.0, cycle(NONE))], None, 12.0, 12.0),
    "shares below limits; a node no more than it has": ([(0.0, cycle(BOTH))], None, 10 * 0.6, 10 * 1.1),
    "declared and not enforced": ([(0.0, cycle(plan(LOW, {})))], None, 10 * 0.6, 12.0),
    "limited and not reserved: all that it may use": ([(0.0, cycle(plan({}, LOW)))], None, 10 * 0.6, 10 * 0.6),
    "what is held holds until it is changed": (
        [(0.0, cycle(BOTH)), (4.0, cycle(plan({A1: 10.0}, {A1: 40.0})))], None, 4 * 0.6 + 6 * 0.4, 4 * 1.1 + 6 * 0.9,
    ),
    "a plan that was refused changes nothing": (
        [(0.0, cycle(BOTH)), (4.0, cycle(plan({A1: 10.0}, {}), ok=False))], None, 10 * 0.6, 10 * 1.1,
    ),
    "before the first cycle the first decision holds": (
        [(4.0, cycle(BOTH))], CpuInForce(HIGH, HIGH), 4 * 1.1 + 6 * 0.6, 10 * 1.1,
    ),
    "before the load and after it nothing counts": (
        [(-6.0, cycle(BOTH)), (-2.0, cycle(plan({A1: 10.0}, {A1: 10.0}))), (12.0, cycle(BOTH))], None, 4.0, 10 * 0.6,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cpu_reserved_and_limit(name: str) -> None:
    cycles, begun, reserved, limit = CASES[name]
    found = metered(cycles, 10.0, begun)
    assert found.reserved_core_s == pytest.approx(reserved)
    assert found.limit_core_s == pytest.approx(limit)


def test_nothing_seen_is_unknown_and_not_0() -> None:
    assert metered([], 10.0) == UNKNOWN


def test_cpu_used_counts_while_the_load_lasts() -> None:
    cycles = [(at_s, cycle(NONE)) for at_s in (0.0, 1.0, 3.0, 5.0)]  # 0.3 CPU seconds each; half of two is outside
    assert metered(cycles, 4.0).used_core_s == pytest.approx(0.3 * (0.5 + 1.0 + 0.5))


def test_traffic_between_nodes_and_between_workers() -> None:
    found = metered([(2.0, cycle(NONE)), (4.0, cycle(NONE))], 10.0).traffic
    assert found is not None
    assert (found.inter_node_rows_per_s, found.inter_worker_rows_per_s) == (30.0, 50.0)
    assert (found.inter_node_share, found.inter_worker_share) == (0.6, 1.0)


def test_without_traffic_it_is_unknown() -> None:
    quiet = cycle(NONE)
    assert metered([(2.0, replace(quiet, snapshot=replace(quiet.snapshot, traffic=())))], 10.0).traffic is None


def test_nodes_and_workers() -> None:
    together = Placement(dict.fromkeys(LOW, Slot("n1", 0)))
    moved = cycle(plan({}, {}, placement=together))
    found = metered([(0.0, cycle(NONE)), (5.0, moved)], 10.0)
    assert (found.nodes_mean, found.nodes_max) == (1.5, 2)
    assert (found.workers_mean, found.workers_max) == (2.0, 3)


def test_a_move_that_waits_for_a_boundary_has_not_happened() -> None:
    together = Placement(dict.fromkeys(LOW, Slot("n1", 0)))
    ordered = cycle(plan({}, {}, placement=together, mode=MigrationMode.BOUNDARY))
    assert metered([(0.0, ordered)], 10.0).nodes_mean == 2.0


def test_operators_over_time() -> None:
    found = metered([(2.0, cycle(BOTH)), (4.0, cycle(NONE))], 10.0).operators
    assert set(found) == {"t/s", "t/a"}
    source, a = found["t/s"], found["t/a"]
    assert (source.at_s, source.instances, a.instances) == ([2.0, 4.0], [1, 1], [2, 2])
    assert source.predicted_rows_per_s == [250.0, 250.0]
    assert source.arrived_rows_per_s == [50.0, 50.0]
    assert (a.reserved_pct, a.limit_pct) == ([50.0, 50.0], [90.0, 90.0])
    assert a.used_pct == [10.0, 10.0]


def test_steered_and_unsteered_are_counted_alike() -> None:
    cycles = [(at_s, cycle(NONE)) for at_s in (2.0, 4.0, 6.0, 8.0, 10.0)]
    watched = RunMeter(10.0)
    for at_s, c in cycles:
        watched.take(Look(at_s, c.snapshot, c.snapshot.placement))
    assert _without_forecasts(watched.told()) == _without_forecasts(metered(cycles, 10.0))


def _without_forecasts(found: Metered) -> Metered:
    return replace(found, operators={n: replace(s, predicted_rows_per_s=[]) for n, s in found.operators.items()})
