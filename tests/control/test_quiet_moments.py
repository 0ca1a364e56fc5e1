"""Cuts that are not urgent wait for a lower load, but not forever."""

from dataclasses import replace

import pytest
from tests.control.epoch_world import K0, K1, ONE, TWO, S, world
from tests.cycles import remembered

from barograph.control.quiet_moments import Quiet, in_quiet_moments
from barograph.engines.check import refusals
from barograph.model import Cycle, Placement, Plan, ReasonCode, Rescale, Snapshot

MOVE = Plan(Placement({K0: TWO}), limits_pct={K0: 10.0}, cuts=("t",))


def past(*loads: float) -> list[Cycle]:
    return [remembered(world(load, at_s=10.0 * i)) for i, load in enumerate(loads)]


def blind(load: float, backlog: float | None = None) -> Snapshot:
    """Only the one part of how long rows wait is known: the latency, or the backlog if it is given."""
    now = world(load, backlog=backlog or 0.0)
    (told,) = now.topology_metrics
    told = replace(told, backlog_known=False) if backlog is None else replace(told, latency_due=None)
    return replace(now, topology_metrics=(told,))


MOMENTS = {  # loads before, now, waits
    "busy": ((20, 50, 100), world(95.0), MOVE, True),
    "quiet": ((20, 50, 100), world(40.0), MOVE, False),
    "steady but for its first cycle": ((5, 100, 104, 98, 101), world(99.0), MOVE, False),
    "constant": ((100, 100, 100), world(100.0), MOVE, False),
    "too little is known": ((20, 100), world(40.0), MOVE, True),
    "nothing is known": ((), world(40.0), MOVE, True),
    "nothing is known, but nothing comes": ((), world(0.0), MOVE, False),
    "rows wait already": ((20, 50, 100), world(95.0, wait_s=1.5), MOVE, False),
    "backlog unknown, and rows that ended did not wait": ((20, 50, 100), blind(95.0), MOVE, False),
    "no row timed, and next to no backlog": ((20, 50, 100), blind(95.0, backlog=20.0), MOVE, True),
    "no row timed, and a backlog": ((20, 50, 100), blind(95.0, backlog=200.0), MOVE, False),
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
    assert any(r.code is ReasonCode.WAITS_FOR_QUIET for r in found.reasons) == waits
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
