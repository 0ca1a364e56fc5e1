"""Epochs as long as the recovery target allows, and cuts that wait for a quiet moment but not for ever."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.engines.check import refusals
from barograph.epochs import WAITS, Quiet, Recovery, capacity_rows_s, epoch_length, in_quiet_moments
from barograph.model import (
    BadInput,
    Cycle,
    Instance,
    Latency,
    Metrics,
    Operator,
    Placement,
    Plan,
    Rescale,
    Slot,
    Snapshot,
    TopologyMetrics,
    Worker,
)
from tests.cycles import chain, nodes, remembered

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("k", 2))
S, K0, K1 = Instance("t", "s", 0), Instance("t", "k", 0), Instance("t", "k", 1)
ONE, TWO = Slot("n1"), Slot("n2")


def world(
    load: float = 100.0, busy: tuple[float, float, float] = (1.0, 5.0, 2.0), *, cpu_pct: float = 600.0,
    backlog: float = 0.0, at_s: float = 100.0, wait_s: float = 0.1, placement: dict[Instance, Slot] | None = None,
) -> Snapshot:  # fmt: skip
    """A cycle of 10 s; busy: seconds that s, k/0 and k/1 worked in it."""
    rows = np.array([load, load / 2, load / 2]) * 10.0
    return Snapshot(
        at_s, 10.0, nodes(2, cpu_pct), (TOPOLOGY,), tuple(Worker(s, s.node, 8) for s in (ONE, TWO)),
        Placement(dict.fromkeys((S, K0, K1), ONE) if placement is None else placement),
        Metrics((S, K0, K1), {"arrived": rows, "executed": rows, "busy_s": np.array(busy), "cpu_s": np.array(busy)}),
        topology_metrics=(TopologyMetrics("t", backlog_rows=backlog, latency_due=Latency(*[wait_s * 1000] * 5)),),
    )  # fmt: skip


def test_capacity_ends_with_the_busiest_instance_or_the_fullest_node() -> None:
    assert capacity_rows_s(world(), "t") == pytest.approx(200.0)  # k/0 is busy half its time
    assert capacity_rows_s(world(cpu_pct=100.0), "t") == pytest.approx(125.0)  # 8 s of 10 are used there
    assert capacity_rows_s(world(busy=(0.0, 0.0, 0.0)), "t") is None
    assert capacity_rows_s(world(busy=(1.0, 12.0, 1.0)), "t") == pytest.approx(100.0)  # never below what it does


CASES = {  # snapshot -> the epoch with R = 30 s, D = 2 s: ((R - D)(mu - lambda) - lambda D - B) / lambda
    "worked": (world(), 26.0, "the longest epoch whose replay"),
    "much spare": (world(busy=(0.5, 0.5, 0.5)), 300.0, "the longest epoch allowed"),
    "no spare": (world(busy=(1.0, 10.0, 1.0)), 5.0, "even the shortest"),
    "a backlog eats into it": (world(backlog=1000.0), 16.0, "the longest epoch whose replay"),
    "no load": (world(load=0.0), 300.0, "no load is seen"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_longest_epoch_that_is_caught_up_in_time(case: str) -> None:
    snapshot, seconds, why = CASES[case]
    found = epoch_length(snapshot, "t", Recovery())
    assert found.seconds == pytest.approx(seconds)
    assert found.reason.why.startswith(why)
    assert found.reason.numbers["epoch_s"] == found.seconds


def test_a_present_length_that_is_near_stays_unless_it_is_too_long() -> None:
    assert epoch_length(world(), "t", Recovery(), 22.0).seconds == 22.0
    assert epoch_length(world(), "t", Recovery(), 20.0).seconds == pytest.approx(26.0)
    assert epoch_length(world(), "t", Recovery(), 27.0).seconds == pytest.approx(26.0)


def test_options_are_checked() -> None:
    with pytest.raises(BadInput, match="the least epoch 9 s is above the most 4 s"):
        Recovery(least_s=9, most_s=4)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(1, 1e5), st.floats(0.01, 10), st.floats(0, 1e5), st.floats(5, 100), st.floats(0, 4), st.floats(1.0, 4.0)
)
def test_within_bounds_catching_up_takes_no_longer_than_the_target(
    load: float, busy_s: float, backlog: float, recovery_s: float, down_s: float, more: float
) -> None:
    recovery = Recovery(recovery_s, down_s)
    now = world(load, (busy_s, busy_s, busy_s), backlog=backlog)
    able = capacity_rows_s(now, "t")
    assert able is not None
    found = epoch_length(now, "t", recovery).seconds
    assert recovery.least_s <= found <= recovery.most_s

    def caught_up_s(epoch_s: float) -> float:
        return down_s + (load * (epoch_s + down_s) + backlog) / max(able - load, 1e-9)

    if found > recovery.least_s:
        assert caught_up_s(found) <= recovery_s * (1 + 1e-6) + 1e-6
    if found < recovery.most_s:
        assert caught_up_s(found * more + 1e-3 * found) > recovery_s * (1 - 1e-6)
    relaxed = epoch_length(now, "t", replace(recovery, recovery_s=recovery_s * more)).seconds
    assert relaxed >= found


MOVE = Plan(Placement({K0: TWO}), limits_pct={K0: 10.0}, cuts=("t",))


def past(*loads: float) -> list[Cycle]:
    return [remembered(world(load, at_s=10.0 * i)) for i, load in enumerate(loads)]


MOMENTS = {  # loads before, now, waits
    "busy": ((20, 50, 100), world(95.0), MOVE, True),
    "quiet": ((20, 50, 100), world(40.0), MOVE, False),
    "steady but for its first cycle": ((5, 100, 104, 98, 101), world(99.0), MOVE, False),
    "constant": ((100, 100, 100), world(100.0), MOVE, False),
    "too little is known": ((20, 100), world(40.0), MOVE, True),
    "nothing is known": ((), world(40.0), MOVE, True),
    "nothing is known, but nothing comes": ((), world(0.0), MOVE, False),
    "rows wait already": ((20, 50, 100), world(95.0, wait_s=1.5), MOVE, False),
    "more instances are needed": ((20, 50, 100), world(95.0), replace(MOVE, rescales=(Rescale("t", "k", 3),)), False),
    "fewer instances can wait": ((20, 50, 100), world(95.0), Plan(rescales=(Rescale("t", "k", 1),), cuts=("t",)), True),
    "no seat": ((20, 50, 100), world(95.0, placement={S: ONE, K1: ONE}), MOVE, False),
    "only shares": ((20, 50, 100), world(95.0), Plan(limits_pct={K0: 10.0}), False),
}  # fmt: skip


@pytest.mark.parametrize("case", MOMENTS)
def test_cuts_that_can_wait_fall_in_quiet_moments(case: str) -> None:
    loads, now, plan, waits = MOMENTS[case]
    found = in_quiet_moments(Quiet(), past(*loads), remembered(now, plan=plan)).plan
    assert refusals(replace(found, version=None), now) == ()
    assert any(r.why == WAITS for r in found.reasons) == waits
    assert bool(found.cuts) == (bool(plan.cuts) and not waits)
    assert set(found.limits_pct) == set(plan.limits_pct)


def test_no_cut_waits_for_ever() -> None:
    history, fell_at_s = past(20, 50, 100), None
    for turn in range(12):
        now = world(95.0 + turn, at_s=30.0 + 10 * turn)  # busier all the time
        found = in_quiet_moments(Quiet(most_wait_s=60.0), history, remembered(now, plan=MOVE))
        if found.plan.cuts:
            fell_at_s = now.at_s
            break
        history.append(found)
    assert fell_at_s == 90.0
