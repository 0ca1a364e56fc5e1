"""What the bench of CPU limits calls too far off."""

from dataclasses import replace

import pytest
from bench._pool import PoolUse, pool_bars, pool_json, switches_in, work_part
from bench._short_epochs import EpochsUse
from bench.enforcement import Use

from barograph.model import Instance

IDLE = PoolUse(reserved_pct=8.0, used_pct=2.0, waited_pct=0.0, switches_s=50.0, rows=1e4, cpu_s=0.3, row_cpu_s=2.9e-5)
BUSY = PoolUse(reserved_pct=1.0, used_pct=9.0, waited_pct=80.0, switches_s=90.0, rows=6e3, cpu_s=1.4, row_cpu_s=2.2e-4)


@pytest.mark.parametrize(
    ("wanted_pct", "ten_s", "one_s", "met"),
    [
        (5.0, 5.9, [5.9], (True, True)),
        (5.0, 6.1, [5.0, 6.2], (False, True)),
        (5.0, 3.9, [5.0, 3.7], (False, False)),
        (60.0, 65.9, [60.0, 74.9], (True, True)),
        (60.0, 66.1, [75.1, 60.0], (False, False)),
        (100.0, 91.0, [76.0], (True, True)),
        (100.0, 89.0, [100.0, 74.0], (False, False)),
    ],
)
def test_it_may_be_off_by_a_tenth_or_a_point_and_in_a_second_by_a_quarter(
    wanted_pct: float, ten_s: float, one_s: list[float], met: tuple[bool, bool]
) -> None:
    whole, second = Use(ten_s, one_s, 50.0).off(wanted_pct)
    assert (whole <= 1.0, second <= 1.0) == met


@pytest.mark.parametrize(
    ("wanted_pct", "used_pct", "met"),
    [
        (5.0, 6.9, True),
        (5.0, 7.1, False),
        (5.0, 9.8, False),  # a quarter of a second of each epoch without a limit
        (5.0, 4.1, True),
        (5.0, 3.9, False),
        (20.0, 22.7, True),
        (20.0, 22.9, False),
        (20.0, 17.9, False),
    ],
)
def test_at_short_epochs_the_beginnings_may_be_above_the_limit(wanted_pct: float, used_pct: float, met: bool) -> None:
    assert (EpochsUse(used_pct, 4).off(wanted_pct) <= 1.0) == met


def missed(*found: PoolUse) -> list[str]:
    return [bar.name for bar in pool_bars(found) if not bar.met]


def test_a_pool_whose_cpu_is_work_and_holds_back_only_those_above_their_shares_is_right() -> None:
    assert missed(IDLE, BUSY) == []


def test_an_instance_within_its_share_that_waits_for_the_pool_is_found() -> None:
    assert [name.split(",")[0] for name in missed(replace(IDLE, waited_pct=1.5), BUSY)] == [
        "wait for the pool within a share"
    ]
    assert missed(replace(IDLE, used_pct=7.5, waited_pct=1.5), IDLE, BUSY) == [], "it may have been above for a moment"


def test_cpu_spent_on_waking_up_is_no_work() -> None:
    assert work_part([IDLE, BUSY]) == pytest.approx((0.29 + 1.32) / 1.7)
    spent = replace(BUSY, rows=4e3)
    assert work_part([IDLE, spent]) == pytest.approx((0.29 + 0.88) / 1.7)
    assert missed(IDLE, spent) == ["part of the pool's CPU that is work"]
    assert work_part([replace(IDLE, rows=1e6)]) == 1.0, "cheaper rows than before are no more work than CPU"
    assert work_part([]) == 0.0


def test_a_pool_with_instances_of_one_kind_shows_nothing() -> None:
    assert missed(IDLE) == ["instances above their shares"]
    assert missed(BUSY) == ["instances within their shares"]


def test_the_figures_of_a_pool_are_by_instance() -> None:
    found = pool_json({Instance("pool", "split", 2): BUSY})
    assert found["work_part"] == pytest.approx(0.943)
    assert found["instances"]["split/2"]["switches_s"] == 90.0


def test_only_voluntary_switches_of_a_thread_are_counted() -> None:
    assert switches_in("Name:\tjava\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n") == 150
