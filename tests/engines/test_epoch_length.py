"""Epochs are as long as the recovery target allows."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.control.epoch_world import world

from barograph.engines.epoch_length import Recovery, capacity_rows_s, epoch_length
from barograph.model import BadInput, ReasonCode


def test_capacity_ends_with_the_busiest_instance_or_the_fullest_node() -> None:
    assert capacity_rows_s(world(), "t") == pytest.approx(200.0)  # k/0 is busy half its time
    assert capacity_rows_s(world(cpu_pct=100.0), "t") == pytest.approx(125.0)  # 8 s of 10 are used there
    assert capacity_rows_s(world(busy=(0.0, 0.0, 0.0)), "t") is None
    assert capacity_rows_s(world(busy=(1.0, 12.0, 1.0)), "t") == pytest.approx(100.0)  # never below what it does


CASES = {  # snapshot -> the epoch with R = 30 s, D = 2 s: ((R - D)(mu - lambda) - lambda D - B) / lambda
    "worked": (world(), 26.0, ReasonCode.EPOCH_FITTED),
    "much spare": (world(busy=(0.5, 0.5, 0.5)), 300.0, ReasonCode.EPOCH_LONGEST),
    "no spare": (world(busy=(1.0, 10.0, 1.0)), 5.0, ReasonCode.EPOCH_SHORTEST),
    "a backlog eats into it": (world(backlog=1000.0), 16.0, ReasonCode.EPOCH_FITTED),
    "no load": (world(load=0.0), 300.0, ReasonCode.EPOCH_NO_LOAD),
}


@pytest.mark.parametrize("case", CASES)
def test_the_longest_epoch_that_is_caught_up_in_time(case: str) -> None:
    snapshot, seconds, code = CASES[case]
    found = epoch_length(snapshot, "t", Recovery())
    assert found.seconds == pytest.approx(seconds)
    assert found.reason.code is code
    assert found.reason.numbers["epoch_s"] == found.seconds


def test_a_present_length_that_is_near_stays_unless_it_is_too_long() -> None:
    assert epoch_length(world(), "t", Recovery(), 22.0).seconds == 22.0
    assert epoch_length(world(), "t", Recovery(), 20.0).seconds == pytest.approx(26.0)
    assert epoch_length(world(), "t", Recovery(), 27.0).seconds == pytest.approx(26.0)


def test_options_are_checked() -> None:
    with pytest.raises(BadInput, match="the shortest epoch 9 s is above the longest epoch 4 s"):
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
