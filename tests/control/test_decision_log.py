"""The log line of a decision: what it says, and when it is worth a line."""

import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.control.epoch_world import K0, K1, ONE, TWO, world
from tests.control.test_loop import Timed, settings

from barograph.control.decision_log import DecisionLog, NotableDecisions, describe
from barograph.control.guards import Guards
from barograph.control.loop import Loop, Mode
from barograph.control.node_pool import NodeOrders
from barograph.logs import FIELDS
from barograph.model import (
    Allotment,
    Cycle,
    Demand,
    Forecast,
    OperatorDemand,
    Outcome,
    Placement,
    Plan,
    Reason,
    ReasonCode,
    Refusal,
    RefusalCode,
    Rescale,
    nodes_kept,
)

MORE = Reason("t/k", ReasonCode.MORE_INSTANCES, "more", {"rows_s": 300.0, "each_rows_s": 110.0})
ENOUGH = Reason("t/s", ReasonCode.INSTANCES_SUFFICE, "enough")
LITTLE = Reason("t", ReasonCode.MOVED_LITTLE, "few moves", {"moves": 1.0})
ONE_CUT = Reason("migration", ReasonCode.ONE_CUT, "one cut", {"cuts": 1.0})
MISSED = Reason("t", ReasonCode.TARGET_MISSED, "it cannot be held", {"forecast_p99_ms": 80.0})
LONGER = Reason("t", ReasonCode.EPOCH_FITTED, "long enough", {"epoch_s": 40.0})
COOLDOWN = Reason("t", ReasonCode.COOLDOWN, "held back", {"since_s": 4.0, "cooldown_s": 20.0})
RELEASED = Reason("n3", ReasonCode.NODE_RELEASED, "idle", {"grace_s": 60.0})
STALE = Refusal("the plan", RefusalCode.STALE, "the cluster has changed")
NO_LIMITS = Refusal("limits", RefusalCode.NO_LIMITS, "enforce is off")
CHANGE = Plan(
    Placement({K1: ONE}), (Rescale("t", "k", 3),), limits_pct={K0: 50.0, K1: 40.0}, cuts=("t",),
    reasons=(LITTLE, ONE_CUT, RELEASED),
)  # fmt: skip


def cycle(plan: Plan, outcome: Outcome | None = None) -> Cycle:
    demand = Demand(
        (OperatorDemand("t", "s", 1, (10.0,), reason=ENOUGH), OperatorDemand("t", "k", 3, (9.0,) * 3, reason=MORE))
    )
    now = world(placement={K0: ONE, K1: TWO})
    return Cycle(now, Forecast(()), demand, Allotment(), plan, outcome)


def test_a_change_with_all_its_numbers() -> None:
    done = Outcome(("moved t/k/1 to n1",), order_to_commit_s=0.4237)
    line = describe(cycle(CHANGE, done), NodeOrders(release=("n3",)), {K0: 50.0, K1: 30.0})
    assert line.fields() == {
        "topologies": ["t"],
        "moves": 1,
        "rescales": ["t/k from 2 to 3"],
        "cuts": ["t"],
        "limits": 1,
        "epochs": [],
        "released": ["n3"],
        "fetched": [],
        "held_back": [],
        "reasons": [
            {"about": "t/k", "code": "more-instances", "numbers": {"rows_s": 300.0, "each_rows_s": 110.0}},
            {"about": "t", "code": "moved-little", "numbers": {"moves": 1.0}},
            {"about": "n3", "code": "node-released", "numbers": {"grace_s": 60.0}},
        ],
        "pause_s": 0.4237,
        "outcome": "applied",
        "refused": [],
        "left_out": [],
    }
    assert line.text() == (
        "t: 1 move (t/k/1 from n2/0 to n1/0), rescale t/k from 2 to 3, 1 cut, 1 limit changed, release n3; "
        "because more-instances of t/k (rows_s=300 each_rows_s=110), moved-little of t (moves=1), "
        "node-released of n3 (grace_s=60); pause 0.42 s; applied"
    )


def test_what_a_guard_holds_back_and_what_an_engine_refuses() -> None:
    held = describe(cycle(Plan(reasons=(COOLDOWN, LITTLE)), Outcome()), NodeOrders(), {})
    assert held.held_back == (("t", "cooldown"),) and held.reasons == () and not held.changes
    assert held.text() == "t: no change; held back: t by cooldown"
    refused = describe(cycle(CHANGE, Outcome(refused=(STALE,))), NodeOrders(release=("n3",)), {})
    assert refused.outcome == "refused" and refused.released == (), "no node is released after a refused plan"
    assert refused.fields()["refused"] == [{"what": "the plan", "code": "stale"}]
    assert refused.text().endswith("; refused: the plan (stale: the cluster has changed)")


def test_what_an_engine_leaves_out_is_said_beside_what_it_did() -> None:
    line = describe(cycle(CHANGE, Outcome(("moved t/k/1 to n1",), left_out=(NO_LIMITS,))), NodeOrders(), {})
    assert (line.outcome, line.fields()["left_out"]) == ("applied", [{"what": "limits", "code": "no-limits"}])
    assert line.text().endswith("; applied; left out: limits (no-limits: enforce is off)")


def test_changes_that_an_engine_left_out_are_not_told_as_made() -> None:
    left = Refusal("changes of t", RefusalCode.MODE_IMPOSSIBLE, "no restart", topology="t")
    line = describe(cycle(replace(CHANGE, reasons=()), Outcome(left_out=(left,))), NodeOrders(), {K0: 45.0, K1: 45.0})
    assert (line.moves, line.rescales, line.cuts, line.changes) == ((), (), (), False)
    assert line.text() == "t: no change; left out: changes of t (mode-impossible: no restart)"
    decisions = NotableDecisions()
    took = [decisions.take(cycle(CHANGE, Outcome(left_out=(left,))), NodeOrders())[1] for _ in range(3)]
    assert took == [True, False, False], "once, and not again in each cycle"


IN_USE = nodes_kept(["n3"], [], RefusalCode.NODE_IN_USE, "t/k/1 has its seat there")
NO_FETCH = nodes_kept([], ["n4"], RefusalCode.MOST_EXECUTORS, "executors.most is 2")


def test_nodes_that_the_driver_kept_are_not_said_to_be_released() -> None:
    line = describe(
        cycle(Plan(reasons=(RELEASED,)), Outcome(left_out=IN_USE)), NodeOrders(release=("n3", "n5"), fetch=("n4",)), {}
    )
    assert (line.released, line.fetched, line.outcome) == (("n5",), ("n4",), "applied")
    assert line.text() == (
        "t: release n5, fetch n4; because node-released of n3 (grace_s=60); applied; "
        "left out: release of n3 (node-in-use: t/k/1 has its seat there)"
    )
    kept = describe(cycle(Plan(reasons=(RELEASED,)), Outcome(left_out=IN_USE)), NodeOrders(release=("n3",)), {})
    assert not kept.changes and "applied" not in kept.text()
    assert kept.fields()["left_out"] == [{"what": "release of n3", "code": "node-in-use"}]


def test_a_fetch_that_came_to_nothing_after_a_refused_plan_is_said() -> None:
    line = describe(cycle(Plan(), Outcome(refused=(STALE,), left_out=NO_FETCH)), NodeOrders(fetch=("n4",)), {})
    assert line.fetched == ()
    assert line.text().endswith("; left out: fetch of n4 (most-executors: executors.most is 2)")


def test_a_node_that_is_kept_again_and_again_is_worth_one_line() -> None:
    decisions = NotableDecisions()
    outcome = Outcome(left_out=IN_USE)
    took = [decisions.take(cycle(Plan(), outcome), NodeOrders(release=("n3",)))[1] for _ in range(3)]
    assert took == [True, False, False]


LEVELS: dict[str, tuple[Sequence[tuple[Plan, Outcome | None]], list[str]]] = {
    "each applied change": ([(CHANGE, Outcome())] * 2, ["INFO", "INFO"]),
    "nothing": ([(Plan(), Outcome())] * 2, ["DEBUG", "DEBUG"]),
    "the same limits again": ([(Plan(limits_pct={K0: 50.0}), Outcome())] * 2, ["INFO", "DEBUG"]),
    "held back until something changes": (
        [(Plan(reasons=(r,)), Outcome()) for r in (COOLDOWN, replace(COOLDOWN, numbers={"since_s": 6.0}))]
        + [(Plan(), Outcome()), (Plan(reasons=(COOLDOWN,)), Outcome())],
        ["INFO", "DEBUG", "DEBUG", "INFO"],
    ),
    "refused, then applied": (
        [(CHANGE, Outcome(refused=(STALE,)))] * 2 + [(CHANGE, Outcome())],
        ["INFO", "DEBUG", "INFO"],
    ),
    "what is said of a target": ([(Plan(reasons=(MISSED,)), Outcome()), (Plan(), Outcome())], ["INFO", "DEBUG"]),
    "the same advice": ([(CHANGE, None)] * 2, ["INFO", "DEBUG"]),
    "advice of limits alone": ([(Plan(limits_pct={K0: pct}), None) for pct in (50.0, 51.0)], ["INFO", "DEBUG"]),
    "advice of an epoch length alone": ([(Plan(reasons=(LONGER,)), None)] * 2, ["INFO", "DEBUG"]),
    "limits that are left out": (
        [(Plan(limits_pct={K0: 50.0}), Outcome(left_out=(NO_LIMITS,))), (Plan(limits_pct={K0: 50.0}), Outcome())],
        ["INFO", "DEBUG"],
    ),
}


@pytest.mark.parametrize("case", LEVELS)
def test_what_is_worth_a_line(case: str, caplog: pytest.LogCaptureFixture) -> None:
    turns, levels = LEVELS[case]
    decisions = DecisionLog()
    with caplog.at_level(logging.DEBUG, "barograph"):
        for plan, outcome in turns:
            decisions.log(cycle(plan, outcome), NodeOrders())
    assert [r.levelname for r in caplog.records] == levels


def test_the_loop_logs_each_cycle_once(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop(Timed(), settings())
    with caplog.at_level(logging.DEBUG, "barograph"):
        turns = [loop.turn() for _ in range(6)]
    lines = [getattr(r, FIELDS) for r in caplog.records if r.name == "barograph.control.decision_log"]
    assert len(lines) == 6
    assert lines[0]["limits"] == len(turns[0].plan.limits_pct) > 0 and lines[0]["outcome"] == "applied"
    assert [line["pause_s"] for line in lines] == [c.outcome and c.outcome.order_to_commit_s for c in turns]


def test_a_frozen_loop_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop(Timed(), settings(guards=Guards(frozen=True), mode=Mode.ADVISE))
    with caplog.at_level(logging.INFO, "barograph"):
        for _ in range(4):
            loop.turn()
    found = [getattr(r, FIELDS)["held_back"] for r in caplog.records]
    assert found[0] == [{"about": "everything", "code": "frozen"}] and len(found) == 1


def test_only_topologies_that_it_is_about_are_named() -> None:
    now = world(placement={K0: ONE, K1: TWO})
    two = replace(now, topologies=(replace(now.topologies[0], name="other"), *now.topologies))
    found = [
        describe(replace(cycle(plan, Outcome()), snapshot=two), NodeOrders(), {}).topologies
        for plan in (CHANGE, Plan(reasons=(COOLDOWN,)), Plan())
    ]
    assert found == [("t",), ("t",), ("other", "t")]


def test_limits_of_an_earlier_controller_are_not_taken_for_new() -> None:
    decisions = NotableDecisions()
    decisions.recall([cycle(Plan(limits_pct={K0: 50.0}), Outcome()), cycle(CHANGE, Outcome(refused=(STALE,)))])
    assert decisions.take(cycle(Plan(limits_pct={K0: 50.0}), Outcome()), NodeOrders())[0].limits == 0
