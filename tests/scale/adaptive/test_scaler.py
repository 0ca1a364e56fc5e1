"""The adaptive scaler: better than the published formulas where these fail, and instances change only if needed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cycles import chain, nodes, remembered, runs, seen, work

from barograph.control.decide import decide
from barograph.forecast import LastValue
from barograph.model import (
    Cycle,
    Demand,
    Forecast,
    Grouping,
    InstanceMetrics,
    Node,
    NodeMetrics,
    Operator,
    OperatorDemand,
    OperatorForecast,
    Placement,
    ReasonCode,
    Slot,
    Snapshot,
)
from barograph.policy.registry import named
from barograph.scale import Adaptive
from barograph.scale.adaptive.fit import fair_parts, fit_to_nodes, fits
from barograph.scale.adaptive.needs import fewest_that_use

SOURCE = Operator("s", 4, source=True)
STRICT = Adaptive(lend=False)  # shares are limits: more headroom, rounded in coarse steps


def size(history: list[Cycle], now: Snapshot, scaler: Adaptive | None = None) -> Demand:
    return (scaler or STRICT)(history, now, LastValue()(history, now, 1))


def one(history: list[Cycle], now: Snapshot, operator: str = "s", scaler: Adaptive | None = None) -> OperatorDemand:
    found = size(history, now, scaler).of(now.topologies[0].name, operator)
    assert found is not None
    return found


def test_a_backlog_that_builds_is_not_hidden() -> None:
    """Arrived 2000, executed 1000, 8 s of CPU on four instances: the true demand is 40."""
    found = one([], seen(chain(SOURCE), {"s": work(2000, 1000, ms=8)}))
    assert found.held_pct == pytest.approx((40,) * 4)


def test_a_backlog_is_caught_up() -> None:
    found = one([], seen(chain(SOURCE), {"s": work(2000, 1000, ms=8, pending=5000)}))
    assert found.held_pct == pytest.approx((60,) * 4)
    assert found.shares_pct == (80,) * 4


def test_idle_cycles_have_little_weight() -> None:
    """One row at 100 ms in an idle cycle, 1000 at 1 ms in a busy one: a mean of ratios would say 50 ms."""
    idle, busy = seen(chain(SOURCE), {"s": work(1, ms=100)}), seen(chain(SOURCE), {"s": work(1000, ms=1)})
    found = one([remembered(idle)], busy)
    assert found.reason is not None
    assert found.reason.numbers["kappa_s"] == pytest.approx(1.1 / 1001)


def test_each_instance_gets_a_share_for_its_own_keys() -> None:
    keyed = chain(Operator("s", 1, source=True), Operator("count", 2, stateful=True), grouping=Grouping.FIELDS)
    hot, cold = work(3000, ms=1), work(1000, ms=1)
    found = one([], seen(keyed, {"s": work(4000, ms=0.1), "count": [hot, cold]}), "count")
    assert found.held_pct == pytest.approx((30, 10))
    shuffled = chain(Operator("s", 1, source=True), Operator("count", 2))
    found = one([], seen(shuffled, {"s": work(4000, ms=0.1), "count": [hot, cold]}), "count")
    assert found.held_pct == pytest.approx((20, 20))


def test_an_excluded_operator_keeps_uneven_shares_where_more_instances_would_help() -> None:
    topology = chain(
        Operator("s", 1, source=True), Operator("count", 4, stateful=True, excluded=True), grouping=Grouping.FIELDS
    )
    rows = [1400.0, 300.0, 300.0, 300.0]
    numbers = {"s": work(sum(rows), ms=0.02), "count": [work(r) for r in rows]}
    history: list[Cycle] = []
    for k in range(8):
        now = seen(topology, numbers, cycle_s=2.0, at_s=2.0 * k, cluster=nodes(3, 60.0))
        history.append(decide(named("adaptive"), history, now))
    found = history[-1].demand.of("t", "count")
    assert found is not None and found.reason is not None
    assert found.parallelism == 4 < found.wanted and found.reason.code is ReasonCode.EXCLUDED_FROM_SCALING
    assert found.shares_pct[0] == 60.0 > 2 * max(found.shares_pct[1:])
    (said,) = history[-1].demand.reasons
    assert (said.about, said.code) == ("t/count/0", ReasonCode.ONE_KEY_TOO_MUCH)
    assert "it is excluded from scaling" in said.why


def test_a_child_is_sized_for_what_its_parent_is_about_to_send() -> None:
    topology = chain(Operator("s", 1, source=True), Operator("c", 1))
    found = one([], seen(topology, {"s": work(1000, pending=5000), "c": work(1000)}), "c")
    assert found.reason is not None
    assert found.reason.numbers["arriving_rows"] == pytest.approx(2000)


def overloaded(stateful: bool = False, **limits: int) -> Snapshot:
    """One instance that needs 1.5 cores."""
    topology = chain(Operator("s", 1, source=True), Operator("a", 1, stateful=stateful, **limits))  # type: ignore[arg-type]
    return seen(topology, {"s": work(15_000, ms=0.01), "a": work(15_000, 10_000, ms=1)})


def test_a_stateless_operator_grows_at_once_if_a_share_would_exceed_a_core() -> None:
    found = one([], overloaded(), "a")
    assert (found.parallelism, found.wanted) == (2, 2)
    assert found.shares_pct == (100, 100)


def test_a_stateful_operator_is_repartitioned_only_if_nothing_else_helps() -> None:
    history: list[Cycle] = []
    degrees = []
    for _ in range(3):
        now = overloaded(stateful=True)
        demand = size(history, now, Adaptive(patience_s=30.0))
        history.append(remembered(now, demand))
        found = demand.of("t", "a")
        assert found is not None
        degrees.append(found.parallelism)
        assert found.wanted == 2
    assert degrees == [1, 1, 2]


def test_below_what_an_instance_can_use_only_shares_change() -> None:
    now = seen(chain(Operator("s", 1, source=True)), {"s": work(7500, ms=1)})
    found = one([], now)
    assert (found.parallelism, found.shares_pct) == (1, (100,))


def test_the_size_of_small_nodes_is_a_limit_too() -> None:
    now = seen(chain(Operator("s", 1, source=True)), {"s": work(5500, ms=1)}, cluster=nodes(3, 60))
    assert one([], now).parallelism == 2


def test_bounds_are_kept() -> None:
    assert one([], overloaded(max_parallelism=1), "a").parallelism == 1
    stuck = Operator("s", 1, source=True, fixed_because="its partitions are given")
    found = one([], seen(chain(stuck), {"s": work(30_000, 10_000, ms=1)}))
    assert found.parallelism == 1
    assert found.wanted > 1
    assert found.reason is not None and found.reason.code is ReasonCode.INSTANCES_FIXED


def test_no_more_instances_than_there_are_seats() -> None:
    topology = chain(Operator("s", 1, source=True), Operator("a", 1))
    numbers = {"s": work(60_000, ms=0.01), "a": work(60_000, 10_000, ms=1)}
    now = seen(topology, numbers, cluster=nodes(4, 600, seats=1))
    found = one([], now, "a")
    assert found.wanted == 8
    assert found.parallelism == 2  # four seats, one of them the source's, and one is kept free for the loss of a node


def test_waiting_operators_get_instances_not_cpu() -> None:
    """Each row waits 100 ms for an external service and uses 1 ms of CPU: 50 rows a second need five instances."""
    waiting = InstanceMetrics(500, 100, 100, 0, 0.1, 10.0)
    topology = chain(Operator("s", 1, source=True), Operator("ask", 1))
    now = seen(topology, {"s": work(500, ms=0.1), "ask": waiting})
    found = one([], now, "ask")
    assert found.parallelism == 7  # five at 100 %, seven at 80 %
    assert found.reason is not None and "wait" in found.reason.why


def test_a_throttled_instance_is_not_taken_for_a_waiting_one() -> None:
    """It is always busy because its share is 20 and fully used: it needs a larger share, not more instances."""
    topology = chain(Operator("s", 1, source=True))
    now = seen(topology, {"s": InstanceMetrics(5000, 2000, 0, 0, 2.0, 10.0)})
    before = Demand((OperatorDemand("t", "s", 1, (20.0,), (15.0,)),))
    idle = seen(topology, {"s": InstanceMetrics()})
    found = one([remembered(idle, before)], now)
    assert (found.parallelism, found.shares_pct) == (1, (80,))


def test_an_instance_on_a_full_node_is_not_taken_for_a_waiting_one() -> None:
    topology = chain(Operator("s", 1, source=True))
    metrics = {"s": InstanceMetrics(5000, 2000, 0, 0, 2.0, 10.0)}
    full = seen(
        topology,
        metrics,
        cluster=nodes(1, 100),
        placement=Placement({next(iter(topology.instances())): Slot("n1")}),
        node_metrics=(NodeMetrics("n1", cpu_used_s=9.9),),
    )
    assert one([], full).parallelism == 1
    assert one([], replace(full, node_metrics=())).parallelism > 1


def test_fewer_instances_only_after_a_long_quiet_time_and_never_with_state() -> None:
    topology = chain(Operator("s", 8, source=True), Operator("count", 8, stateful=True))
    now = seen(topology, {"s": work(100), "count": work(100)})
    history: list[Cycle] = []
    degrees = []
    scaler = Adaptive(low_s=50, low=0.3)
    for _ in range(5):
        demand = size(history, now, scaler)
        history.append(remembered(now, demand))
        degrees.append(tuple(o.parallelism for o in demand.operators))
    assert degrees == [(8, 8)] * 4 + [(4, 8)]


@pytest.mark.parametrize("cycle_s", [2.0, 5.0, 10.0, 25.0])
def test_patience_is_counted_in_seconds_however_time_is_cut_into_cycles(cycle_s: float) -> None:
    """The same load for 30 s: a stateful operator gets its instances after the same time, with any cycle."""
    topology = chain(Operator("s", 1, source=True), Operator("count", 2, stateful=True))
    history: list[Cycle] = []
    waited_s = 0.0
    for k in range(1, 40):
        numbers = {"s": work(3000 * cycle_s, ms=0.01), "count": work(3000 * cycle_s, 2000 * cycle_s, ms=1)}
        now = seen(topology, numbers, cluster=nodes(4, 600), at_s=k * cycle_s, cycle_s=cycle_s)
        demand = size(history, now, Adaptive(patience_s=20.0))
        found = demand.of("t", "count")
        assert found is not None and found.wanted > 2
        history.append(remembered(now, demand))
        waited_s += cycle_s
        if found.parallelism > 2:
            break
    assert waited_s == (20.0 if cycle_s < 20 else 50.0), "one cycle alone is never enough"


def test_without_measurements_cpu_is_shared_evenly() -> None:
    now = seen(chain(SOURCE), {"s": InstanceMetrics(arrived=10)}, cluster=nodes(2, 100))
    assert one([], now).shares_pct == (50,) * 4
    declared = seen(chain(replace(SOURCE, cpu_pct=30.0)), {"s": InstanceMetrics(arrived=10)}, cluster=nodes(2, 100))
    assert one([], declared).shares_pct == (30,) * 4


def test_headroom_is_cut_before_needed_shares_when_the_cluster_is_full() -> None:
    now = seen(chain(SOURCE), {"s": work(1900, ms=10)}, cluster=nodes(2, 100))  # 19 s of CPU; two cores for 10 s
    found = one([], now)
    assert all(47.5 <= share <= 50 for share in found.shares_pct)
    assert found.reason is not None and found.reason.code is ReasonCode.HEADROOM_GIVEN_UP


def test_if_the_cluster_is_too_small_higher_levels_are_served_first() -> None:
    vip, rest = chain(SOURCE, name="vip", level=1), chain(SOURCE, name="rest", level=2)
    numbers = {"vip": {"s": work(1500, ms=10)}, "rest": {"s": work(1500, ms=10)}}
    found = size([], seen([rest, vip], numbers, cluster=nodes(2, 100)))
    by_topology = {o.topology: o for o in found.operators}
    assert by_topology["vip"].shares_pct >= (37.5,) * 4
    assert by_topology["rest"].shares_pct == pytest.approx((50 - by_topology["vip"].shares_pct[0],) * 4)
    assert by_topology["rest"].reason is not None and by_topology["rest"].reason.code is ReasonCode.CLUSTER_TOO_SMALL


def test_within_a_level_small_demands_are_met_before_large_ones() -> None:
    small, big = chain(SOURCE, name="small"), chain(SOURCE, name="big")
    numbers = {"small": {"s": work(400, ms=10)}, "big": {"s": work(4000, 2000, ms=10)}}
    found = size([], seen([big, small], numbers, cluster=nodes(2, 100)))
    by_topology = {o.topology: o.shares_pct for o in found.operators}
    assert by_topology["small"] >= (10,) * 4
    assert by_topology["big"] == pytest.approx((50 - by_topology["small"][0],) * 4)
    assert by_topology["big"] > by_topology["small"]
    for o in found.operators:  # busy instances may use idle CPU
        assert all(ceiling >= share for ceiling, share in zip(o.ceilings_pct, o.shares_pct, strict=True))


def test_ceilings_are_set_only_if_cpu_is_short() -> None:
    found = size([], seen(chain(SOURCE), {"s": work(1000, ms=10)}))
    assert found.operators[0].ceilings_pct == ()


def test_fair_parts() -> None:
    assert fair_parts({0: 10, 1: 50, 2: 90}, 120) == {0: 10, 1: 50, 2: 60}
    assert fair_parts({0: 10, 1: 50, 2: 90}, 90) == {0: 10, 1: 40, 2: 40}
    assert fair_parts({0: 10, 1: 20}, 100) == {0: 10, 1: 20}


def test_no_more_instances_are_wanted_if_the_cluster_has_no_cpu_left() -> None:
    now = overloaded()
    small = replace(now, nodes=now.nodes[:1], workers=now.workers[:1])
    small = replace(small, nodes=(replace(small.nodes[0], cpu_pct=100.0),))
    found = one([], small, "a")
    assert (found.parallelism, found.wanted) == (1, 1)


def test_granularity_follows_the_size_of_nodes() -> None:
    large = one([], seen(chain(SOURCE), {"s": work(400, ms=1)}, cluster=nodes(3, 600)))
    small = one([], seen(chain(SOURCE), {"s": work(400, ms=1)}, cluster=nodes(3, 60)))
    assert (large.shares_pct[0], small.shares_pct[0]) == (20, 5)


@settings(max_examples=60, deadline=None)
@given(run=runs(), cpu_pct=st.sampled_from([60.0, 200.0, 1600.0]))
def test_shares_are_never_below_demand_unless_the_cluster_is_too_small(run: list[Snapshot], cpu_pct: float) -> None:
    cluster = nodes(3, cpu_pct)
    history: list[Cycle] = []
    for snapshot in run:
        now = replace(snapshot, nodes=cluster)
        demand = size(history, now)
        assert demand == size(history, now)
        history.append(remembered(now, demand))
    shares = [share for o in demand.operators for share in o.shares_pct]
    assert all(0 < share <= min(100.0, cpu_pct) + 1e-9 for share in shares)
    assert sum(shares) <= 3 * cpu_pct + 1e-6
    limit = min(100.0, cpu_pct)
    needed = [min(_numbers(o).get("needed_pct", 0.0), o.parallelism * limit) for o in demand.operators]
    total = sum(max(r, o.parallelism) for r, o in zip(needed, demand.operators, strict=True))
    for r, o in zip(needed, demand.operators, strict=True):
        cut = o.reason is not None and o.reason.code is ReasonCode.CLUSTER_TOO_SMALL
        # Instances are whole: up to one of them may find no node though all nodes together have room for it.
        if total <= 3 * (cpu_pct - limit) or (total <= 3 * cpu_pct and not cut):
            assert sum(o.shares_pct) >= r - 1e-6, "a share below demand though there is room"


def _numbers(o: OperatorDemand) -> dict[str, float]:
    assert o.reason is not None
    return dict(o.reason.numbers)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(0.1, 100), min_size=1, max_size=30).map(sorted),
    st.lists(st.floats(100, 400), min_size=1, max_size=5),
)
def test_shares_that_fit_can_be_placed(shares: list[float], rooms: list[float]) -> None:
    if fits(np.array(shares), [Node(f"n{i}", room) for i, room in enumerate(rooms)]):
        assert sum(shares) <= sum(rooms) + 1e-6
    else:
        assert sum(shares) > max(rooms) - 100


def test_a_forecast_with_large_errors_gets_a_margin() -> None:
    now = seen(chain(SOURCE), {"s": work(1000, ms=10)})
    forecast = Forecast((OperatorForecast("t", "s", 1000.0, 1000.0, error_rows=200.0),))
    found = [Adaptive(margin=m, theta_pct=1, lend=False)([], now, forecast).operators[0] for m in (0.0, 3.0)]
    assert [o.held_pct[0] for o in found] == pytest.approx([25, 25])
    assert [o.shares_pct[0] for o in found] == [34, 54]  # 25 / 0.75, and for 1600 rows instead of 1000


def test_room_is_left_for_the_largest_recent_share() -> None:
    high, low = (seen(chain(SOURCE), {"s": work(rows, ms=10)}) for rows in (2000, 200))
    first = size([], high, Adaptive(phi=1))
    past = [remembered(high, first)]
    second, later = (size(past, replace(low, at_s=s), Adaptive(phi=1, room_s=30)) for s in (20.0, 40.0))
    (high_share,), (low_share,) = ({*d.operators[0].shares_pct} for d in (first, second))
    assert low_share < high_share
    assert second.operators[0].reserved_pct == pytest.approx((high_share,) * 4)
    assert later.operators[0].reserved_pct == later.operators[0].shares_pct


def test_room_is_left_for_expected_growth() -> None:
    """1,000, 1,100, 1,200, 1,300 rows in cycles of 10 s: in 150 s it will be 2,800; at most 1.3 times is allowed."""
    past: list[Cycle] = []
    for k in range(4):
        now = replace(seen(chain(SOURCE), {"s": work(1000 + 100 * k, ms=1)}), at_s=10.0 * k)
        found = size(past, now, Adaptive(growth=9.0)).operators[0]
        past.append(remembered(now, Demand((found,))))
    assert found.reserved_pct[0] / found.shares_pct[0] == pytest.approx(2800 / 1300, rel=0.01)
    capped = size(past[:-1], now, Adaptive(growth=1.3)).operators[0]
    assert capped.reserved_pct[0] / capped.shares_pct[0] == pytest.approx(1.3)


def test_shares_that_are_no_limits_are_rounded_finely() -> None:
    """25 % of a core with headroom is 33.3 %: rounded up in steps of 20 it would be 40."""
    now = seen(chain(SOURCE), {"s": work(1000, ms=10)})
    lending, strict = size([], now, Adaptive()).operators[0], size([], now, STRICT).operators[0]
    assert lending.held_pct == strict.held_pct
    assert 25 / 0.75 <= lending.shares_pct[0] < 36 < strict.shares_pct[0] == 40


def test_no_room_is_reserved_for_an_assumed_share() -> None:
    """Before anything ran, shares are declared or even; measured ones do not start from these."""
    silent, busy = (seen(chain(SOURCE), {"s": work(rows, ms=10)}) for rows in (0, 200))
    guess = size([], silent)
    (guessed,) = guess.operators
    assert (guessed.held_pct, guessed.reserved_pct) == ((), ())
    (known,) = size([remembered(silent, guess)], busy).operators
    assert known == replace(one([], busy), reason=known.reason)
    assert max(known.reserved_pct) < min(guessed.shares_pct)


def test_small_instances_are_not_rounded_up_in_large_steps() -> None:
    """Steps of 20 would fill a node of 200 % with ten instances, however little they need."""
    found = one([], seen(chain(SOURCE), {"s": work(400, ms=1)}, cluster=nodes(3, 200)))
    assert found.shares_pct == pytest.approx((200 / 30,) * 4)


def demanded(lengths_s: list[float], rate: float) -> list[Demand]:
    """What it wants in each cycle, under a constant load of rows that take 2 ms."""
    history: list[Cycle] = []
    at_s = 0.0
    for length_s in lengths_s:
        at_s += length_s
        rows = rate * length_s
        topology = chain(SOURCE, Operator("k", 4))
        now = seen(topology, {"s": work(rows, ms=2), "k": work(rows, ms=2)}, cycle_s=length_s, at_s=at_s)
        # Fewer instances come after a time of low load, which is not the same in all of these.
        history.append(remembered(now, size(history, now, Adaptive(low_s=1e9))))
    return [cycle.demand for cycle in history]


@settings(max_examples=40, deadline=None)
@given(lengths_s=st.lists(st.floats(0.5, 40), min_size=1, max_size=25), rate=st.floats(10, 1500))
def test_a_constant_load_wants_the_same_however_time_is_cut_into_cycles(lengths_s: list[float], rate: float) -> None:
    """Shares within 1 %, and never other instances: a long cycle, as a move makes one, is no reason for a change."""
    cut, even = demanded(lengths_s, rate), demanded([2.0] * len(lengths_s), rate)
    for mine, theirs in zip(cut, even, strict=True):
        for a, b in zip(mine.operators, theirs.operators, strict=True):
            assert a.parallelism == b.parallelism == 4
            assert sum(a.shares_pct) == pytest.approx(sum(b.shares_pct), rel=0.01)


UNEQUAL = (Node("n0", cpu_pct=90), Node("n1", cpu_pct=60), Node("n2", cpu_pct=50))


def test_an_operator_that_needs_the_whole_cluster_gets_instances_for_every_node() -> None:
    """Two instances would use 150 of 200 per cent: the third node stays idle whatever their shares are."""
    load = {"s": work(10_000, 2000, ms=5)}
    now = seen(chain(Operator("s", 2, source=True)), load, cluster=UNEQUAL)
    found = one([], now)
    assert found.parallelism == 3
    assert found.reason is not None and found.reason.code is ReasonCode.CLUSTER_TOO_SMALL
    assert fits(np.array(found.shares_pct), UNEQUAL), "each of them has a place"


@pytest.mark.parametrize(
    ("cpu_pct", "limit_pct", "nodes_pct", "count"),
    [
        (150, 90, (90, 60, 50), 2),
        (151, 90, (90, 60, 50), 3),
        (500, 90, (90, 60, 50), 3),
        (250, 100, (400,), 3),
        (390, 100, (250, 250), 4),
        (401, 100, (250, 250), 5),
        (0, 100, (100,), 0),
    ],
)
def test_the_fewest_instances_that_use_a_part_of_the_cluster(
    cpu_pct: float, limit_pct: float, nodes_pct: tuple[float, ...], count: int
) -> None:
    assert fewest_that_use(cpu_pct, limit_pct, nodes_pct) == count


@given(
    st.lists(st.floats(0.5, 100), min_size=1, max_size=12),
    st.lists(st.floats(50, 400), min_size=1, max_size=5),
)
def test_shares_fit_onto_nodes_whatever_is_needed(needed: list[float], nodes_pct: list[float]) -> None:
    cluster = [Node(f"n{i}", cpu_pct=pct) for i, pct in enumerate(nodes_pct)]
    wanted = np.array(needed)
    same = np.zeros(len(needed), dtype=np.int64)
    shares, part = fit_to_nodes(wanted, wanted, wanted * 1.3, same, same, cluster)
    assert fits(shares, cluster)
    assert 0 < part <= 1.0
