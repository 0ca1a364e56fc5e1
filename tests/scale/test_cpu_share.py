"""Liu et al.'s shares: worked numbers, and known errors of the published formula, which are kept."""

import pytest

from barograph.forecast import TrendOrParents
from barograph.model import Cycle, Demand, InstanceMetrics, Operator, OperatorDemand, ReasonCode, Snapshot
from barograph.scale import CpuShare
from barograph.scale.smooth import allotted, hold
from tests.cycles import WORD_COUNT, chain, nodes, remembered, seen, word_count_cycles, work


def sized(snapshots: list[Snapshot], operator: str, scaler: CpuShare | None = None) -> OperatorDemand:
    history = [remembered(s) for s in snapshots[:-1]]
    now = snapshots[-1]
    found = (scaler or CpuShare())(history, now, TrendOrParents()(history, now, 1))
    demand = found.of(now.topologies[0].name, operator)
    assert demand is not None
    return demand


@pytest.mark.parametrize(
    ("held", "share"), [(0, 20), (9, 20), (10, 20), (10.1, 40), (30, 40), (30.1, 60), (90, 100), (95, 120)]
)
def test_allotted_worked(held: float, share: float) -> None:
    assert allotted(held, 20, 1000) == share
    assert allotted(held, 20, 100) == min(share, 100)


HELD = {
    "down only by half a step": (
        (50, 45, 41, 40, 39, 55, 44),
        (50, 50, 50, 40, 40, 55, 44),
        (60, 60, 60, 60, 60, 80, 60),
    ),
    "back up": ((51, 45, 47), (51, 51, 51), (80, 80, 80)),
}


@pytest.mark.parametrize("case", HELD)
def test_held_worked(case: str) -> None:
    demands, held_values, shares = HELD[case]
    held: float | None = None
    for r, expected, share in zip(demands, held_values, shares, strict=True):
        held = hold(r, held, 20)
        assert held == expected
        assert allotted(held, 20, 100) == share


@pytest.mark.parametrize(("operator", "r", "share"), [("spout", 3.75, 20), ("split", 14.6, 40), ("count", 18.25, 40)])
def test_demand_worked(operator: str, r: float, share: float) -> None:
    found = sized(word_count_cycles(), operator)
    assert found.held_pct == pytest.approx((r,) * 4)
    assert found.shares_pct == (share,) * 4


def test_held_is_read_from_the_cycle_before() -> None:
    topology = chain(Operator("s", 1, source=True))
    shares = []
    history: list[Cycle] = []
    for r in (50, 45, 41, 40, 39, 55, 44):
        now = seen(topology, {"s": work(r * 100, ms=1)})
        # phi 1, so that the demand is exactly this cycle's: r * 100 rows of 1 ms in 10 s are r per cent
        demand = CpuShare(phi=1)(history, now, TrendOrParents(phi=1)(history, now, 1))
        history.append(remembered(now, demand))
        shares.append(demand.operators[0].shares_pct[0])
    assert shares == [60, 60, 60, 60, 60, 80, 60]


def test_as_published_demand_is_underestimated_while_a_backlog_builds() -> None:
    topology = chain(Operator("s", 4, source=True))
    found = sized([seen(topology, {"s": work(2000, 1000, ms=8, pending=1000)})] * 5, "s")
    assert found.held_pct[0] == pytest.approx(20)
    assert found.shares_pct[0] == 40


def test_more_instances_are_wanted_if_one_would_need_more_than_a_core() -> None:
    topology = chain(Operator("s", 2, source=True))
    found = sized([seen(topology, {"s": work(30_000, ms=1)})], "s")  # 30 s of CPU in 10 s
    assert (found.parallelism, found.wanted, found.shares_pct) == (2, 3, (100, 100))
    assert found.reason is not None and found.reason.code is ReasonCode.INSTANCES_SHORT


def test_operators_run_at_their_maximum_unless_they_cannot_change() -> None:
    free = Operator("s", 2, source=True, max_parallelism=5)
    assert sized([seen(chain(free), {"s": work(100)})], "s").parallelism == 5
    assert sized([seen(chain(free), {"s": work(100)})], "s", CpuShare(at_maximum=False)).parallelism == 2
    stuck = Operator("s", 2, source=True, max_parallelism=5, fixed_because="its partitions are given")
    assert sized([seen(chain(stuck), {"s": work(100)})], "s").parallelism == 2


def test_a_share_never_exceeds_the_largest_node() -> None:
    now = seen(chain(Operator("s", 1, source=True)), {"s": work(9000, ms=1)}, cluster=nodes(3, 60))
    assert sized([now], "s").shares_pct == (60,)


def test_without_work_the_held_share_stays() -> None:
    topology = chain(Operator("s", 1, source=True))
    now = seen(topology, {"s": InstanceMetrics(arrived=100, pending=100)})
    before = Demand((OperatorDemand("t", "s", 1, (60.0,), (45.0,)),))
    found = CpuShare()([remembered(now, before)], now, TrendOrParents()([], now, 1))
    assert found.operators[0].held_pct == (45,)
    assert CpuShare()([], now, TrendOrParents()([], now, 1)).operators[0].shares_pct == (20,)


def test_every_operator_of_word_count_has_a_demand() -> None:
    now = word_count_cycles()[-1]
    found = CpuShare()([], now, TrendOrParents()([], now, 1))
    assert [(o.topology, o.operator) for o in found.operators] == [("wc", o.name) for o in WORD_COUNT.operators]
