"""True-rate sizing: target utilisation, catching up, resting."""

from dataclasses import replace

import pytest

from barograph.forecast import LastValue
from barograph.model import InstanceMetrics, Metrics, Operator, OperatorDemand, Outcome, Plan, Rescale, Snapshot
from barograph.scale import TrueRate
from tests.cycles import chain, remembered, seen


def busy(rate: float, true_rate: float, pending: float = 0.0) -> InstanceMetrics:
    """Rows a second arriving, and rows a second one busy instance can do; it keeps up if it can."""
    done = min(rate, true_rate) * 10
    return InstanceMetrics(rate * 10, done, done, pending, done / true_rate, done / true_rate)


def sized(now: Snapshot, operator: str = "s", scaler: TrueRate | None = None, history: int = 0) -> OperatorDemand:
    earlier = [remembered(replace(now, at_s=now.at_s - 10.0 * k)) for k in range(history, 0, -1)]
    found = (scaler or TrueRate())(earlier, now, LastValue()(earlier, now, 1)).of("t", operator)
    assert found is not None
    return found


CASES = {
    # arriving/s, true rate/s of one, pending, instances -> instances
    "at the target": (700.0, 1000.0, 0.0, 1, 1),
    "too much": (2000.0, 1000.0, 0.0, 1, 3),  # 2000 / (1000 * 0.7)
    "backlog to be gone in 60 s": (700.0, 1000.0, 60_000.0, 1, 3),  # (700 + 1000) / 700
    "within the band, nothing changes": (450.0, 1000.0, 0.0, 1, 1),
    "idle, at most half at once": (100.0, 1000.0, 0.0, 8, 4),
}


@pytest.mark.parametrize("case", CASES)
def test_sized_by_true_rate(case: str) -> None:
    rate, true_rate, pending, before, after = CASES[case]
    now = seen(chain(Operator("s", before, source=True)), {"s": busy(rate, true_rate, pending)}, at_s=60.0)
    assert sized(now, history=5).parallelism == after


def test_nothing_shrinks_before_a_whole_window_was_measured() -> None:
    now = seen(chain(Operator("s", 8, source=True)), {"s": busy(100.0, 1000.0)}, at_s=60.0)
    assert [sized(now, history=h).parallelism for h in (0, 4, 5)] == [8, 8, 4]


def test_the_snapshot_before_the_first_cycle_is_no_cycle_of_the_window() -> None:
    now = seen(chain(Operator("s", 8, source=True)), {"s": busy(100.0, 1000.0)}, at_s=60.0)
    run = [remembered(replace(now, at_s=10.0 * k)) for k in range(6)]
    run[0] = remembered(replace(now, at_s=0.0, metrics=Metrics(())))
    late = replace(now, at_s=50.0)
    assert TrueRate()(run[:5], late, LastValue()(run[:5], late, 1)).operators[0].parallelism == 8
    assert TrueRate()(run, now, LastValue()(run, now, 1)).operators[0].parallelism == 4


def test_children_are_sized_for_what_parents_will_send_once_they_catch_up() -> None:
    topology = chain(Operator("s", 1, source=True), Operator("c", 1))
    now = seen(topology, {"s": busy(1000.0, 1000.0, 60_000.0), "c": busy(900.0, 1000.0)})
    found = sized(now, "c")
    assert found.reason is not None
    assert found.reason.numbers["target_rows_per_s"] == pytest.approx(2000)
    assert found.parallelism == 3


def rested(order_at_s: float, took_s: float, cycle_s: float, since: int) -> tuple[int, int]:
    """An order, its cycle of ``cycle_s``, then cycles of 10 s: the instances it gets, and those it wants."""
    topology = chain(Operator("s", 1, source=True))
    load = {"s": busy(2000.0, 1000.0)}
    order = remembered(seen(topology, load, at_s=order_at_s), plan=Plan(rescales=(Rescale("t", "s", 1),)))
    history = [replace(order, outcome=Outcome(done=("scale",), order_to_commit_s=took_s))]
    ends_s = [order_at_s + cycle_s + 10.0 * k for k in range(since + 1)]
    run = [seen(topology, load, at_s=at_s, cycle_s=cycle_s if at_s == ends_s[0] else 10.0) for at_s in ends_s]
    history += [remembered(s) for s in run[:-1]]
    found = TrueRate()(history, run[-1], LastValue()(history, run[-1], 1)).operators[0]
    return found.parallelism, found.wanted


def test_nothing_changes_for_a_window_after_a_change() -> None:
    assert [rested(100.0, 0.4, 10.0, since)[0] for since in (0, 5, 6)] == [1, 1, 3]


def test_a_long_cycle_of_a_slow_change_does_not_shorten_the_rest_period() -> None:
    assert [rested(100.0, 58.0, 60.0, since)[0] for since in (0, 1, 5, 6)] == [1, 1, 1, 3]


def test_bounds_and_unknown_rates_are_respected() -> None:
    capped = Operator("s", 1, source=True, max_parallelism=2)
    assert sized(seen(chain(capped), {"s": busy(9000.0, 1000.0)})).parallelism == 2
    idle = seen(chain(capped), {"s": InstanceMetrics(arrived=10)})
    assert sized(idle).parallelism == 1
