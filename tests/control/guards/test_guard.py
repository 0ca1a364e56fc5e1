"""Each guard holds back what it should, says why, and leaves a plan that is valid as a whole."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cycles import nodes, remembered

from barograph.control.guards import Act, Guards, acts_of, guard, remember
from barograph.control.guards.acts import Distress, changed
from barograph.control.guards.rollback import verdict
from barograph.engines.check import refusals
from barograph.model import (
    BadInput,
    Cycle,
    Demand,
    Edge,
    Instance,
    Latency,
    Metrics,
    Operator,
    OperatorDemand,
    Outcome,
    Placement,
    Plan,
    Reason,
    ReasonCode,
    Refusal,
    RefusalCode,
    Rescale,
    Slot,
    Snapshot,
    Topology,
    TopologyMetrics,
    Worker,
)

FREE = Guards(0.0, None, None, None, settle_cycles=1, return_s=0.0, probation_s=1e9, penance_s=0.0)
ONE, TWO, THREE = (Slot(f"n{i}") for i in (1, 2, 3))


def topology(name: str = "t", count: int = 2, level: int = 2) -> Topology:
    return Topology(name, (Operator("s", 1, source=True), Operator("k", count)), (Edge("s", "k"),), level=level)


def world(
    at_s: float = 100.0,
    topologies: tuple[Topology, ...] = (),
    placement: dict[Instance, Slot] | None = None,
    seats: int = 4,
    load: float = 100.0,
    wait_s: float = 0.1,
) -> Snapshot:
    topologies = topologies or (topology(),)
    every_instance = [i for t in topologies for i in t.instances()]
    cluster = nodes(3, 200)
    return Snapshot(
        at_s,
        10.0,
        cluster,
        topologies,
        tuple(Worker(Slot(n.name), n.name, seats) for n in cluster),
        Placement(dict.fromkeys(every_instance, ONE) if placement is None else placement),
        Metrics(tuple(every_instance), {"arrived": np.full(len(every_instance), load * 10.0)}),
        topology_metrics=tuple(
            TopologyMetrics(t.name, latency_due=Latency(*[1000.0 * wait_s] * 5)) for t in topologies
        ),
        version=7,
    )


def cycle(now: Snapshot, plan: Plan, applied: bool = False, demand: Demand | None = None) -> Cycle:
    made = remembered(now, demand, plan=replace(plan, version=now.version))
    return replace(made, outcome=Outcome(("all",))) if applied else made


def k(index: int, name: str = "t") -> Instance:
    return Instance(name, "k", index)


def act(at_s: float, name: str = "t", **more: object) -> Act:
    fields: dict[str, object] = {"moves": 1, "rescales": 0, "cuts": 1, "before": Placement(), **more}
    return Act(at_s, name, **fields)  # type: ignore[arg-type]  # fields by name, for brevity


MOVE = Plan(Placement({k(0): TWO}), limits_pct={k(0): 30.0, k(1): 20.0}, cuts=("t",))


def reasons(found: Cycle) -> list[ReasonCode]:
    return [r.code for r in found.plan.reasons]


def test_without_a_past_the_plan_is_left_as_it_is() -> None:
    asked = cycle(world(), MOVE)
    assert guard(Guards(), (), (), asked) == asked


def test_frozen_nothing_changes_at_all() -> None:
    found = guard(Guards(), (), (), cycle(world(), MOVE), Guards(frozen=True).frozen_at(0.0)).plan
    assert found.version == 7
    assert not found.placement.slots and not found.cuts and not found.limits_pct
    (why,) = found.reasons
    assert why.code is ReasonCode.FROZEN
    assert dict(why.numbers) == {"topologies": 1.0, "moves": 1.0, "rescales": 0.0, "limits": 2.0}


HOLDING = {
    "cooldown": (replace(FREE, cooldown_s=20.0), act(90.0), ReasonCode.COOLDOWN),
    "budget of cuts": (replace(FREE, cuts_per_hour=1), act(90.0, "other"), ReasonCode.BUDGET_USED_UP),
    "budget of moves": (replace(FREE, moves_per_hour=3), act(90.0, "other", moves=3), ReasonCode.BUDGET_USED_UP),
    "penance": (
        replace(FREE, penance_s=50.0),
        act(60.0, rollback=True, load_rows_s=105.0),
        ReasonCode.AFTER_ROLLBACK,
    ),
    "to and fro": (
        replace(FREE, return_s=50.0),
        act(60.0, before=Placement({k(0): TWO})),
        ReasonCode.WOULD_RETURN,
    ),
}
PASSING = {
    "cooldown is over": (replace(FREE, cooldown_s=20.0), act(79.0)),
    "another topology's cooldown": (replace(FREE, cooldown_s=20.0), act(99.0, "other")),
    "more than an hour ago": (replace(FREE, cuts_per_hour=1), act(-3501.0)),
    "no limit": (FREE, act(99.0)),
    "penance is over": (replace(FREE, penance_s=30.0), act(60.0, rollback=True, load_rows_s=100.0)),
    "penance, but another load": (replace(FREE, penance_s=50.0), act(60.0, rollback=True, load_rows_s=50.0)),
    "came from elsewhere": (replace(FREE, return_s=50.0), act(60.0, before=Placement({k(0): THREE}))),
    "an engine that was started anew": (replace(FREE, cooldown_s=20.0), act(5000.0)),
}


@pytest.mark.parametrize("case", HOLDING)
def test_what_holds_back_all_but_the_shares_says_why_in_numbers(case: str) -> None:
    guards, past, code = HOLDING[case]
    found = guard(guards, (past,), (), cycle(world(), MOVE)).plan
    assert not found.placement.slots and not found.cuts
    assert dict(found.limits_pct) == dict(MOVE.limits_pct)
    (reason,) = found.reasons
    assert reason.about == "t" and reason.code is code and reason.numbers


@pytest.mark.parametrize("case", PASSING)
def test_what_lets_it_pass(case: str) -> None:
    guards, past = PASSING[case]
    found = guard(guards, (past,), (), cycle(world(), MOVE)).plan
    assert found.placement.slots == MOVE.placement.slots and found.cuts == ("t",)


def test_instances_without_a_seat_are_never_held_back() -> None:
    now = world(placement={Instance("t", "s", 0): ONE, k(1): ONE})
    guards = replace(FREE, cooldown_s=1e6, cuts_per_hour=0, moves_per_hour=0)
    assert guard(guards, (act(99.0),), (), cycle(now, MOVE)).plan.placement.slots == MOVE.placement.slots


def test_fewer_instances_only_after_some_cycles_more_at_once() -> None:
    def wish(count: int) -> Demand:
        return Demand((OperatorDemand("t", "k", count, (80.0 / count,) * count),))

    down = Plan(rescales=(Rescale("t", "k", 1),), limits_pct={k(0): 80.0}, cuts=("t",))
    guards, now = replace(FREE, settle_cycles=3), world()
    history: list[Cycle] = []
    for turn in range(3):
        found = guard(guards, (), history, cycle(now, down, demand=wish(1)))
        assert bool(found.plan.rescales) == (turn == 2), reasons(found)
        history.append(found)
    held = history[0].plan
    assert held.cuts == ()
    assert dict(held.limits_pct) == {k(0): 40.0, k(1): 40.0}, "the planned total, spread over the present instances"
    broken = [history[0], cycle(now, Plan(), demand=wish(2))]
    assert not guard(guards, (), broken, cycle(now, down, demand=wish(1))).plan.rescales
    up = Plan(rescales=(Rescale("t", "k", 3),), cuts=("t",))
    assert guard(guards, (), (), cycle(now, up, demand=wish(3))).plan.rescales


def test_changes_that_need_seats_of_a_deferred_change_are_deferred_too() -> None:
    a, b = topology("a"), topology("b")
    places = dict.fromkeys(a.instances(), ONE) | dict.fromkeys(b.instances(), TWO)
    now = world(topologies=(a, b), placement=places, seats=3)
    swap = Placement({k(0, "a"): TWO, k(0, "b"): ONE})
    plan = Plan(swap, cuts=("a", "b"))
    assert refusals(plan, now) == ()
    found = guard(replace(FREE, cooldown_s=20.0), (act(95.0, "a"),), (), cycle(now, plan)).plan
    assert not found.placement.slots
    assert [(r.about, r.code) for r in found.reasons] == [("a", ReasonCode.COOLDOWN), ("b", ReasonCode.SEATS_HELD)]


def test_a_budget_goes_to_the_higher_level_first() -> None:
    low, high = topology("low", level=3), topology("high", level=1)
    now = world(topologies=(low, high), seats=8)
    plan = Plan(Placement({k(0, "low"): TWO, k(0, "high"): TWO}), cuts=("low", "high"))
    found = guard(replace(FREE, cuts_per_hour=2), (act(50.0, "x"),), (), cycle(now, plan)).plan
    assert found.cuts == ("high",)


def tried(wait_s: float = 2.0, plan: Plan = MOVE) -> tuple[Cycle, tuple[Act, ...]]:
    done = cycle(world(100.0, wait_s=wait_s), plan, applied=True)
    return done, acts_of(done)


AFTER = {k(0): TWO, k(1): ONE, Instance("t", "s", 0): ONE}
JUDGED = {  # wait before, wait after, load after -> undone
    "in vain": (2.0, 2.0, 100.0, True),
    "harm": (0.4, 1.2, 100.0, True),
    "it helped": (2.0, 1.5, 100.0, False),
    "calm stays calm": (0.1, 0.9, 100.0, False),
    "the load has grown": (2.0, 9.0, 120.0, False),
}


@pytest.mark.parametrize("case", JUDGED)
def test_an_act_that_did_not_help_is_undone(case: str) -> None:
    before_s, after_s, load, undone = JUDGED[case]
    done, acts = tried(before_s)
    now = world(120.0, placement=AFTER, wait_s=after_s, load=load)
    found = guard(replace(FREE, probation_s=20.0), acts, [done], cycle(now, Plan())).plan
    assert dict(found.placement.slots) == ({k(0): ONE} if undone else {})
    assert [r.code for r in found.reasons] == ([ReasonCode.ROLLED_BACK] if undone else [])
    assert refusals(found, now) == ()


def test_an_act_of_unknown_backlog_is_judged_by_latency_of_either_kind() -> None:
    done, acts = tried(2.0)
    times = Latency(*[9000.0] * 5)
    for told in (TopologyMetrics("t", latency_due=times), TopologyMetrics("t", latency_record=times)):
        now = replace(world(120.0, placement=AFTER), topology_metrics=(replace(told, backlog_known=False),))
        found = guard(replace(FREE, probation_s=20.0), acts, [done], cycle(now, Plan())).plan
        assert ReasonCode.ROLLED_BACK in [r.code for r in found.reasons]


def test_an_act_of_unknown_backlog_is_said_not_to_be_judged() -> None:
    done, acts = tried(2.0)
    now = world(120.0, placement=AFTER, wait_s=9.0)
    blind = replace(now, topology_metrics=(TopologyMetrics("t", backlog_known=False),))
    found = guard(replace(FREE, probation_s=20.0), acts, [done], cycle(blind, Plan())).plan
    assert not found.placement.slots
    assert [(r.about, r.code) for r in found.reasons] == [("t", ReasonCode.NOT_JUDGED)]
    later = cycle(replace(blind, at_s=122.0), Plan())
    again = guard(replace(FREE, probation_s=20.0), acts, [cycle(blind, Plan())], later)
    assert again.plan.reasons == (), "it is said once"


CALM = Latency(*[100.0] * 5)
PARTS = {  # told before, told after -> reasons
    "backlog unknown, then known": ((CALM, None), (CALM, 300.0), []),
    "backlog unknown, then known, and worse": ((CALM, None), (Latency(*[9000.0] * 5), 300.0), ["rolled-back"]),
    "distress by a backlog that is then unknown": ((CALM, 300.0), (CALM, None), ["not-judged"]),
    "calm, and the backlog then unknown": ((CALM, 20.0), (CALM, None), []),
    "a backlog that is then unknown, and worse": ((CALM, 300.0), (Latency(*[9000.0] * 5), None), ["rolled-back"]),
    "no row was timed before, and the backlog shrank": ((None, 300.0), (Latency(*[2500.0] * 5), 200.0), []),
    "nothing was known before": ((None, None), (CALM, 900.0), ["not-judged"]),
    "nothing is known of both": ((None, 300.0), (CALM, None), ["not-judged"]),
}


@pytest.mark.parametrize("case", PARTS)
def test_an_act_is_judged_by_what_was_known_before_it_and_is_now(case: str) -> None:
    """Rows a second: 100. So 300 rows of backlog are 3 s, on top of a latency of 0.1 s."""
    before, after, said = PARTS[case]

    def telling(now: Snapshot, latency: Latency | None, backlog: float | None) -> Snapshot:
        told = TopologyMetrics(
            "t", backlog_rows=backlog or 0.0, latency_record=latency, backlog_known=backlog is not None
        )
        return replace(now, topology_metrics=(told,))

    done = cycle(telling(world(100.0), *before), MOVE, applied=True)
    now = telling(world(120.0, placement=AFTER), *after)
    found = guard(replace(FREE, probation_s=20.0), acts_of(done), [done], cycle(now, Plan())).plan
    assert [r.code.value for r in found.reasons] == said
    assert bool(found.placement.slots) == ("rolled-back" in said)


def test_an_act_by_figures_that_were_too_old_is_said_not_to_be_judged_and_an_ordered_one_is_not() -> None:
    now = world(120.0, placement=AFTER, wait_s=9.0)
    for code, said in ((ReasonCode.FIGURES_STALE, [ReasonCode.NOT_JUDGED]), (ReasonCode.NEW_LEVELS, [])):
        done, acts = tried(0.1, replace(MOVE, reasons=(Reason("t", code, "so it was"),)))
        found = guard(replace(FREE, probation_s=20.0), acts, [done], cycle(now, Plan())).plan
        assert [r.code for r in found.reasons] == said and not found.placement.slots


def test_an_act_is_judged_once_and_a_rollback_never() -> None:
    done, acts = tried()
    guards = replace(FREE, probation_s=20.0)
    early, now = world(119.0, placement=AFTER, wait_s=2.0), world(121.0, placement=AFTER, wait_s=2.0)
    assert not guard(guards, acts, [done], cycle(early, Plan())).plan.placement.slots
    back = guard(guards, acts, [done, cycle(early, Plan())], cycle(now, Plan()))
    assert back.plan.placement.slots
    acts = remember(acts, replace(back, outcome=Outcome(("all",))))
    assert [a.rollback for a in acts] == [False, True]
    later = world(150.0, wait_s=9.0)
    assert not guard(guards, acts, [done, back], cycle(later, Plan())).plan.placement.slots
    # A cycle after the end of the probation did not undo it: it is not judged again.
    passed = [done, cycle(world(125.0, placement=AFTER, wait_s=0.1), Plan())]
    assert not guard(guards, tried()[1], passed, cycle(world(130.0, placement=AFTER, wait_s=9.0), Plan())).plan.cuts


def test_a_rescale_is_undone_with_its_places() -> None:
    more = Plan(Placement({k(2): TWO}), (Rescale("t", "k", 3),), cuts=("t",))
    done, acts = tried(2.0, more)
    now = world(120.0, (topology(count=3),), {**dict.fromkeys(topology().instances(), ONE), k(2): TWO}, wait_s=3.0)
    found = guard(replace(FREE, probation_s=20.0), acts, [done], cycle(now, Plan())).plan
    assert found.rescales == (Rescale("t", "k", 2),)
    assert found.cuts == ("t",)


def test_what_cannot_be_undone_stands() -> None:
    done, acts = tried()
    now = world(120.0, placement=AFTER, wait_s=2.0)
    now = replace(now, workers=now.workers[1:], placement=Placement(dict.fromkeys(topology().instances(), TWO)))
    assert not guard(replace(FREE, probation_s=20.0), acts, [done], cycle(now, Plan())).plan.placement.slots


def test_a_topology_whose_restart_failed_counts_as_cut_and_the_others_as_changed() -> None:
    """Else a restart that fails would be tried again in each cycle, and a half-applied plan would never be judged."""
    two = (topology(), replace(topology(), name="u"))
    here = {i: ONE for t in two for i in t.instances()}
    moves = {k(0): TWO, replace(k(0), topology="u"): TWO}
    asked = cycle(world(0.0, two, here), Plan(Placement(moves), (Rescale("t", "k", 3),)), applied=True)
    failure = Refusal("restart-query of t", RefusalCode.RESTART_FAILED, "its epoch did not end", topology="t")
    found = {a.topology: a for a in acts_of(replace(asked, outcome=Outcome(("moved",), (failure,))))}
    assert (found["t"].moves, found["t"].rescales, found["t"].cuts, found["t"].parallelism) == (0, 0, 1, ())
    assert (found["u"].moves, found["u"].rescales, found["u"].cuts) == (1, 0, 1)


def test_a_topology_that_was_left_out_of_a_plan_was_not_changed() -> None:
    two = (topology(), replace(topology(), name="u"))
    here = {i: ONE for t in two for i in t.instances()}
    moves = {k(0): TWO, replace(k(0), topology="u"): TWO}
    asked = cycle(world(0.0, two, here), Plan(Placement(moves), (Rescale("t", "k", 3),), cuts=("t", "u")))
    left = Refusal("changes of t", RefusalCode.MODE_IMPOSSIBLE, "it cannot be restarted", topology="t")
    (found,) = acts_of(replace(asked, outcome=Outcome(("moved",), left_out=(left,))))
    assert (found.topology, found.moves, found.rescales, found.cuts) == ("u", 1, 0, 1)


def test_a_plan_that_failed_on_the_way_may_have_been_applied() -> None:
    asked = cycle(world(), MOVE, applied=True)
    failure = Refusal("the plan", RefusalCode.ENGINE_FAILED, "the engine failed")
    assert [a.moves for a in acts_of(replace(asked, outcome=Outcome(refused=(failure,))))] == [1]
    stale = Refusal("the plan", RefusalCode.STALE, "the cluster has changed")
    assert acts_of(replace(asked, outcome=Outcome(refused=(stale,)))) == ()


def test_what_was_refused_was_not_done() -> None:
    asked = cycle(world(), MOVE, applied=True)
    (found,) = acts_of(asked)
    assert (found.moves, found.cuts, found.rescales) == (1, 1, 0)
    assert acts_of(replace(asked, outcome=None)) == ()
    assert acts_of(cycle(world(), Plan(limits_pct={k(0): 9.0}), applied=True)) == ()


def test_no_change_is_judged_by_the_effect_of_new_priorities() -> None:
    now = world(wait_s=0.1)
    plan = Plan(Placement({Instance("t", "k", 0): TWO}))
    ordered = replace(plan, reasons=(Reason("priorities", ReasonCode.NEW_LEVELS, "levels have changed"),))
    cycle = remembered(now)
    by_policy, by_level = (acts_of(replace(cycle, plan=p, outcome=Outcome(("moved",))))[0] for p in (plan, ordered))
    later = world(at_s=130.0, wait_s=20.0)
    assert verdict(by_policy, later) is not None
    assert verdict(by_level, later) is None


def test_options_are_checked() -> None:
    with pytest.raises(BadInput, match="guards: cooldown_s must be a number of at least 0"):
        Guards(cooldown_s=-1.0)
    with pytest.raises(BadInput, match="guards: cuts_per_hour must be a whole number"):
        Guards(cuts_per_hour=1.5)  # type: ignore[arg-type]  # that is the point


_slots = st.sampled_from([ONE, TWO, THREE])


@st.composite
def changes(draw: st.DrawFn) -> tuple[Snapshot, Plan]:
    """A crowded cluster and a plan that is valid for it."""
    topologies = tuple(
        topology(name, draw(st.integers(1, 3)), draw(st.integers(1, 3))) for name in "abc"[: draw(st.integers(1, 3))]
    )
    every_instance = [i for t in topologies for i in t.instances()]
    seats = draw(st.integers(-(-len(every_instance) // 3), 5))

    def seated(instances: list[Instance]) -> dict[Instance, Slot] | None:
        chosen = {i: draw(_slots) for i in instances}
        return chosen if all(list(chosen.values()).count(s) <= seats for s in (ONE, TWO, THREE)) else None

    present = seated(every_instance) or {i: (ONE, TWO, THREE)[n % 3] for n, i in enumerate(every_instance)}
    now = world(draw(st.floats(4000, 5000)), topologies, present, seats)
    rescales = tuple(
        Rescale(t.name, "k", n) for t in topologies if (n := draw(st.integers(1, 4))) != t.operator("k").parallelism
    )
    after = [i for t in topologies for i in replace_k(t, rescales).instances()]
    target = seated(after) or {}
    moved = {i: s for i, s in target.items() if present.get(i) != s}
    plan = Plan(
        Placement(moved),
        rescales,
        {},
        {i: draw(st.floats(1, 100)) for i in after},
        tuple(dict.fromkeys([*(i.topology for i in moved), *(r.topology for r in rescales)])),
        version=now.version,
    )
    return (now, plan) if not refusals(plan, now) else (now, Plan(version=now.version))


def replace_k(t: Topology, rescales: tuple[Rescale, ...]) -> Topology:
    counts = {r.topology: r.parallelism for r in rescales}
    return replace(t, operators=(t.operators[0], replace(t.operators[1], parallelism=counts.get(t.name, t.operators[1].parallelism))))  # fmt: skip  # noqa: E501


_guards = st.builds(
    Guards,
    st.sampled_from([0.0, 20.0]),
    *[st.none() | st.integers(0, 4)] * 3,
    settle_cycles=st.integers(1, 3),
    return_s=st.sampled_from([0.0, 60.0]),
    probation_s=st.just(20.0),
)
_part = st.none() | st.floats(0, 3)
_distress = st.builds(Distress, _part, _part)
_acts = st.lists(
    st.builds(
        act, st.floats(3900, 4990), st.sampled_from("abc"), moves=st.integers(0, 2), rescales=st.integers(0, 2),
        rollback=st.booleans(), distress=st.none() | _distress, load_rows_s=st.none() | st.just(100.0),
        before=st.dictionaries(st.builds(k, st.integers(0, 2), st.sampled_from("abc")), _slots).map(Placement),
    ),
    max_size=4,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(changes(), _guards, _acts)
def test_a_trimmed_plan_is_valid_and_holds_nothing_new(
    world_and_plan: tuple[Snapshot, Plan], guards: Guards, acts: list[Act]
) -> None:
    now, plan = world_and_plan
    acts = sorted(acts, key=lambda a: a.at_s)
    found = guard(guards, acts, (), cycle(now, plan)).plan
    assert refusals(found, now) == ()
    undone = {r.about for r in found.reasons if r.code is ReasonCode.ROLLED_BACK}
    for instance, slot in found.placement.slots.items():
        assert instance.topology in undone or plan.placement.get(instance) == slot
    assert {r for r in found.rescales if r.topology not in undone} <= set(plan.rescales)
    about = {r.about.partition("/")[0] for r in found.reasons}
    changes_now = set(changed(found, now))
    assert set(changed(plan, now)) - changes_now <= about, "held back without a reason"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(1, 30), changes()), max_size=8), _guards)
def test_over_any_run_budgets_and_cooldowns_are_kept(
    turns: list[tuple[float, tuple[Snapshot, Plan]]], guards: Guards
) -> None:
    acts: tuple[Act, ...] = ()
    at_s, first = 0.0, True
    for step_s, (now, plan) in turns:
        at_s += step_s
        asked = cycle(replace(now, at_s=at_s), plan)
        found = replace(guard(guards, acts, (), asked), outcome=Outcome(("all",)))
        fresh = acts_of(found)
        for each in fresh:
            assert all(at_s - a.at_s >= guards.cooldown_s for a in acts if a.topology == each.topology)
        acts = remember(acts, found)
        if fresh and not first:
            for what in ("cuts", "moves", "rescales"):
                limit = getattr(guards, f"{what}_per_hour")
                spent = sum(getattr(a, what) for a in acts)
                assert limit is None or sum(getattr(a, what) for a in fresh) == 0 or spent <= limit
        first = first and not acts
