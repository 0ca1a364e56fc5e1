"""Limits above shares: where a node has CPU that no other topology there needs."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.limit.tenants import instance, placed, topologies_of

from barograph.limit.lend import LEAST_PCT, SHORT_CYCLES
from barograph.limit.limits import Limit
from barograph.limit.save import SAVED_CYCLES
from barograph.model import (
    BESIDE_CYCLES,
    Allotment,
    Cycle,
    Demand,
    Forecast,
    Metrics,
    Node,
    NodeMetrics,
    OperatorDemand,
    Placement,
    Plan,
    Snapshot,
)

HAIR = 1e-6


def cluster(cpu_pct: dict[str, float], present: dict[str, str]) -> Snapshot:
    """present: topology/index -> node."""
    nodes = tuple(Node(n, cpu) for n, cpu in cpu_pct.items())
    return Snapshot(0, 10, nodes, topologies_of(present), placement=placed(present), shared_workers=False)


def asked(shares: dict[str, tuple[float, ...]], held: dict[str, tuple[float, ...]] | None = None) -> Demand:
    return Demand(tuple(OperatorDemand(t, "a", len(s), s, (held or {}).get(t, s)) for t, s in shares.items()))


def limits(
    now: Snapshot, demand: Demand, target: Placement | None = None, seen: tuple[Snapshot, ...] = ()
) -> dict[str, float]:
    history = [Cycle(then, Forecast(()), demand, Allotment(), Plan()) for then in seen]
    found = Limit(lend=True)(history, now, demand, target or now.placement)
    return {f"{i.topology}/{i.index}": limit for i, limit in found.items()}


def with_threads_beside() -> Snapshot:
    """One node that t and u share; in 10 s it used 10 s, its instances 8.5."""
    now = cluster({"x": 100}, {"t/0": "x", "u/0": "x"})
    metrics = Metrics((instance("t/0"), instance("u/0")), {"cpu_s": np.array([1.5, 7.0])})
    return replace(now, metrics=metrics, node_metrics=(NodeMetrics("x", 10.0),))


def test_a_topology_alone_on_a_node_is_not_limited() -> None:
    now = cluster({"x": 150, "y": 60}, {"t/0": "x", "t/1": "x", "t/2": "y"})
    assert limits(now, asked({"t": (10, 20, 5)})) == {"t/0": 100, "t/1": 100, "t/2": 60}


def test_a_topology_on_a_shared_node_may_use_what_the_needs_of_others_leave() -> None:
    """t may use 200 - 40 in proportion to 20 : 60, u 200 - 80 - but one instance at most a core."""
    now = cluster({"x": 200}, {"t/0": "x", "t/1": "x", "u/0": "x"})
    assert limits(now, asked({"t": (20, 60), "u": (40,)})) == {"t/0": 60, "t/1": 100, "u/0": 100}


def test_a_need_counts_without_its_headroom() -> None:
    now = cluster({"x": 100}, {"t/0": "x", "u/0": "x"})
    assert limits(now, asked({"t": (20,), "u": (40,)}, {"u": (30,)})) == {"t/0": 70, "u/0": 80}


def test_an_instance_that_moves_has_the_lower_limit_of_both_nodes() -> None:
    now = cluster({"x": 100, "y": 100}, {"t/0": "x", "u/0": "y"})
    found = limits(now, asked({"t": (20,), "u": (70,)}), placed({"t/0": "y", "u/0": "y"}))
    assert found == {"t/0": 30, "u/0": 80}


def test_without_lending_and_without_enforcing_nothing_is_added() -> None:
    now = cluster({"x": 100}, {"t/0": "x"})
    demand = asked({"t": (20,)})
    assert Limit()((), now, demand, now.placement) == {instance("t/0"): 20}
    free = Demand(demand.operators, enforced=False)
    assert Limit(lend=True)((), now, free, now.placement) == {}


def test_where_cpu_is_short_the_demand_says_the_limits() -> None:
    now = cluster({"x": 100}, {"t/0": "x"})
    demand = Demand((OperatorDemand("t", "a", 1, (20,), ceilings_pct=(40,)),))
    assert limits(now, demand) == {"t/0": 40}


def test_where_cpu_is_short_no_topology_takes_the_share_of_another() -> None:
    """u needs far more than there is; t is due 20, although it needs 15, and u may have what that leaves, no more."""
    now = cluster({"x": 100}, {"t/0": "x", "u/0": "x"})
    demand = Demand(
        (
            OperatorDemand("t", "a", 1, (20,), held_pct=(15,), ceilings_pct=(20,)),
            OperatorDemand("u", "a", 1, (75,), held_pct=(300,), ceilings_pct=(100,)),
        )
    )
    assert limits(now, demand) == {"t/0": 20, "u/0": 80}


def test_a_topology_short_of_cpu_pays_for_the_threads_beside_the_instances() -> None:
    """In 10 s the node used 10 s, its instances 8.5: t keeps its share, u gets what that and the 15 % leave."""
    now = with_threads_beside()
    demand = Demand(
        (
            OperatorDemand("t", "a", 1, (20,), held_pct=(15,), ceilings_pct=(20,)),
            OperatorDemand("u", "a", 1, (80,), held_pct=(300,), ceilings_pct=(100,)),
        )
    )
    assert limits(now, demand) == {"t/0": 20, "u/0": 65}


def test_borrowed_cpu_leaves_those_threads_what_they_need() -> None:
    """CPU is not short. The 15 % are not lent, but a share is guaranteed even if they need part of it."""
    now = with_threads_beside()
    assert limits(now, asked({"t": (20,), "u": (40,)})) == {"t/0": 45, "u/0": 65}
    assert limits(now, asked({"t": (20,), "u": (75,)})) == {"t/0": 20, "u/0": 75}


def test_what_those_threads_need_is_learned_from_several_cycles() -> None:
    """Their part of all that was used: in one cycle of four 1.5 s of 10, in the others nothing of 8.5: 4.2 %."""
    surge = with_threads_beside()
    calm = replace(surge, node_metrics=(NodeMetrics("x", 8.5),))
    demand = asked({"t": (20,), "u": (40,)})
    assert limits(calm, demand) == {"t/0": 60, "u/0": 80}
    assert limits(calm, demand, seen=(calm, surge, calm)) == {"t/0": 55, "u/0": 75}
    assert limits(calm, demand, seen=(surge, *[calm] * BESIDE_CYCLES)) == {"t/0": 60, "u/0": 80}


def test_those_threads_need_the_same_part_however_little_is_used() -> None:
    surge = with_threads_beside()
    tenth = replace(surge.metrics, columns={"cpu_s": np.array([0.15, 0.7])})
    idle = replace(surge, metrics=tenth, node_metrics=(NodeMetrics("x", 1.0),))
    demand = asked({"t": (20,), "u": (40,)})
    assert limits(idle, demand) == limits(surge, demand) == {"t/0": 45, "u/0": 65}


def test_several_that_are_short_pay_for_those_threads_by_what_they_are_due() -> None:
    """The 15 % beside the instances cost t, due a quarter, 3.75 and u the rest: both keep some.
    A t due 5 would have 4: no limit is so low that its thread makes the whole JVM wait."""
    now = with_threads_beside()
    demand = Demand(
        (
            OperatorDemand("t", "a", 1, (20,), held_pct=(25,), ceilings_pct=(30,)),
            OperatorDemand("u", "a", 1, (60,), held_pct=(300,), ceilings_pct=(100,)),
        )
    )
    assert limits(now, demand) == {"t/0": 30, "u/0": 68}
    small = OperatorDemand("t", "a", 1, (5,), held_pct=(6,), ceilings_pct=(8,))
    demand = Demand((small, replace(demand.operators[1], shares_pct=(95,))))
    assert limits(now, demand) == {"t/0": LEAST_PCT, "u/0": 80}


def crowded(t_share: float = 20.0) -> Demand:
    """t needs less than its share, u far more than there is."""
    return Demand(
        (
            OperatorDemand("t", "a", 1, (t_share,), held_pct=(15,), ceilings_pct=(t_share,)),
            OperatorDemand("u", "a", 1, (80,), held_pct=(300,), ceilings_pct=(100,)),
        )
    )


def cycles(used_pct: Iterable[float], limit_pct: float = 20.0, demand: Demand | None = None) -> list[Cycle]:
    """What t used in each of the cycles before now, and what its limit was."""
    plan = Plan(limits_pct={instance("t/0"): limit_pct})
    return [Cycle(seen(pct), Forecast(()), demand or crowded(), Allotment(), plan) for pct in used_pct]


def seen(used_pct: float) -> Snapshot:
    now = cluster({"x": 100}, {"t/0": "x", "u/0": "x"})
    return replace(now, metrics=Metrics((instance("t/0"),), {"cpu_s": np.array([used_pct / 100 * now.cycle_s])}))


def limit_of_t(history: list[Cycle], used_pct: float, demand: Demand | None = None) -> float:
    now = seen(used_pct)
    return Limit(lend=True)(history, now, demand or crowded(), now.placement)[instance("t/0")]


def test_a_topology_not_short_of_cpu_may_use_later_what_it_leaves_of_its_share() -> None:
    """Of its 20 it left 5 in each of three cycles: for one cycle it may have 35. What it then uses is gone."""
    assert limit_of_t(cycles([15, 15, 15]), 15) == pytest.approx(35)
    assert limit_of_t(cycles([15, 15, 15, 15]), 35) == pytest.approx(20)
    assert limit_of_t(cycles([15, 15, 15, 15, 35]), 16) == pytest.approx(24)
    assert limit_of_t(cycles([90, 90, 90]), 90) == pytest.approx(20)  # the share is sure, also after more was used


def test_savings_are_bounded_in_time_and_by_the_node() -> None:
    assert limit_of_t(cycles([19] * 40), 19) == pytest.approx(20 + SAVED_CYCLES)
    assert limit_of_t(cycles([0] * 40), 0) == 100


def test_a_topology_limited_below_its_share_saved_nothing() -> None:
    assert limit_of_t(cycles([10] * 5, limit_pct=10), 10) == pytest.approx(20)
    assert limit_of_t(cycles([10] * 5, limit_pct=12), 10) == pytest.approx(30)


def test_a_topology_short_of_cpu_saves_nothing() -> None:
    """u is due 80 and may use 80; that it uses 50 gives it no more."""
    now = replace(seen(15), metrics=Metrics((instance("u/0"),), {"cpu_s": np.array([5.0])}))
    plan = Plan(limits_pct={instance("u/0"): 80.0})
    history = [Cycle(now, Forecast(()), crowded(), Allotment(), plan)] * 5
    assert Limit(lend=True)(history, now, crowded(), now.placement)[instance("u/0")] == 80


def test_a_topology_recently_short_of_cpu_counts_as_short() -> None:
    """CPU is not short now; without this rule u could use all that t does not need, and t would have no savings."""
    fits = asked({"t": (20,), "u": (75,)}, {"t": (15,), "u": (60,)})
    assert limit_of_t(cycles([15] * SHORT_CYCLES), 15, fits) == pytest.approx(20 + 5 * SHORT_CYCLES)
    long_ago = [*cycles([15]), *cycles([15] * SHORT_CYCLES, demand=fits)]
    assert limit_of_t(long_ago, 15, fits) == 40


def test_topologies_that_are_short_together_divide_their_node_and_leave_none_of_it_idle() -> None:
    """Shares of 50, 50 and 95 on a node of 100: what two of them need leaves the third less than nothing."""
    now = cluster({"x": 100}, {"t/0": "x", "u/0": "x", "v/0": "x"})
    shares = {"t": 50.0, "u": 50.0, "v": 95.0}
    needs = [OperatorDemand(t, "a", 1, (s,), (2 * s,), ceilings_pct=(100.0,)) for t, s in shares.items()]
    assert limits(now, Demand(tuple(needs))) == {"t/0": 25, "u/0": 25, "v/0": 48}
    firm = OperatorDemand("v", "a", 1, (60.0,), (45.0,), ceilings_pct=(100.0,))  # it is not short and keeps its share
    assert limits(now, Demand((*needs[:2], firm))) == {"t/0": 20, "u/0": 20, "v/0": 60}


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.floats(1, 60))
def test_over_the_cycles_no_topology_gets_more_than_its_share(wishes: list[float], share: float) -> None:
    """Whatever t would like to use: in no stretch of cycles do its limits give it more than its share of them and of
    the cycles that it can save from."""
    demand, history, used = crowded(share), list[Cycle](), list[float]()
    limit = share
    for wish in wishes:
        used.append(min(wish, limit))
        limit = limit_of_t(history, used[-1], demand)
        history.append(*cycles([used[-1]], limit, demand))
    for start in range(len(used)):
        for end in range(start + 1, len(used) + 1):
            assert sum(used[start:end]) <= share * (end - start + SAVED_CYCLES) + HAIR


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_no_topology_that_surges_takes_what_another_needs(data: st.DataObject) -> None:
    nodes = {n: data.draw(st.sampled_from([60.0, 200.0, 600.0]), n) for n in "xy"}
    sizes = {t: data.draw(st.integers(1, 4), t) for t in "tuv"}
    names = [f"{t}/{k}" for t, count in sizes.items() for k in range(count)]
    before, after = ({i: data.draw(st.sampled_from("xy")) for i in names} for _ in range(2))
    most = min(min(nodes.values()), 60.0) / len(names) / 2  # so that shares fit, wherever they are
    shares = {t: tuple(data.draw(st.floats(0.5, most)) for _ in range(c)) for t, c in sizes.items()}
    needs = {t: tuple(share * 0.75 for share in mine) for t, mine in shares.items()}
    now = cluster(nodes, before)
    found = limits(now, asked(shares, needs), placed(after))
    assert found == limits(now, asked(shares, needs), placed(after))
    for name, limit in found.items():
        assert limit >= shares[instance(name).topology][instance(name).index]
        for at in (before, after):
            assert limit <= min(100.0, nodes[at[name]]) + HAIR
    for at in (before, after):
        for node, cpu_pct in nodes.items():
            here = [i for i in names if at[i] == node]
            for tenant in {instance(i).topology for i in here}:
                mine = [instance(i) for i in here if instance(i).topology == tenant]
                theirs = [instance(i) for i in here if instance(i).topology != tenant]
                needed = sum(needs[i.topology][i.index] for i in theirs)
                used = sum(found[f"{tenant}/{i.index}"] for i in mine)
                assert not theirs or used + needed <= cpu_pct + HAIR
