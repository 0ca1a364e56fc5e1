"""What the Spark engine refuses or leaves out on any cluster, and how failed restarts are reported."""

from dataclasses import replace

import pytest
from tests.cycles import chain, nodes, seen

from barograph.engines.spark.orders.spark_refusals import enforceable, failed_restarts, impossible, restartable_part
from barograph.model import (
    Instance,
    InstanceMetrics,
    MigrationMode,
    Operator,
    Placement,
    Plan,
    Refusal,
    RefusalCode,
    Rescale,
    Slot,
)

LIMIT = Plan(limits_pct={Instance("wordcount", "split", 0): 50.0}, cuts=("wordcount",))
TWO = tuple(chain(Operator("s", 1, source=True), Operator("a", 2), name=name) for name in ("kept", "plain"))
KEPT, PLAIN = Instance("kept", "a", 1), Instance("plain", "a", 1)
N1, N2, N3, N4 = (Slot(f"n{k}", 0) for k in range(1, 5))
HERE = {t.name: dict.fromkeys(t.instances(), slot) for t, slot in zip(TWO, (N1, N2), strict=True)}
NOW = seen(
    TWO, {t.name: {"a": InstanceMetrics()} for t in TWO}, cluster=nodes(4, 100),
    placement=Placement({**HERE["kept"], **HERE["plain"]}),
)  # fmt: skip
BOTH = Plan(
    Placement({KEPT: N3, PLAIN: N4}), (Rescale("kept", "a", 3), Rescale("plain", "a", 3)), {KEPT: 20.0, PLAIN: 10.0},
    {Instance("plain", "a", i): 30.0 for i in range(3)}, ("kept", "plain"),
)  # fmt: skip
LEFT = {  # the plan, topologies that cannot be restarted -> those that are left out
    "none": (BOTH, (), set()),
    "a moved one": (Plan(Placement({PLAIN: N4})), ("plain",), {"plain"}),
    "a rescaled one": (Plan(rescales=(Rescale("plain", "a", 1),)), ("plain",), {"plain"}),
    "a cut one": (Plan(cuts=("plain",)), ("plain",), {"plain"}),
    "one that stays as it is": (Plan(Placement({KEPT: N3, PLAIN: N2})), ("plain",), set()),
    "one of which only limits change": (Plan(Placement({KEPT: N3}), limits_pct={PLAIN: 5.0}), ("plain",), set()),
}
RESTARTS = (MigrationMode.RESTART_QUERY, MigrationMode.WORKER)


@pytest.mark.parametrize("mode", RESTARTS)
@pytest.mark.parametrize("case", LEFT)
def test_only_topologies_that_would_be_restarted_are_left_out(case: str, mode: MigrationMode) -> None:
    asked, unsupervised, names = LEFT[case]
    plan, left_out = restartable_part(replace(asked, mode=mode), NOW, unsupervised)
    assert {r.topology for r in left_out} == names and {r.code for r in left_out} <= {RefusalCode.MODE_IMPOSSIBLE}
    if not names:
        assert plan == replace(asked, mode=mode)


@pytest.mark.parametrize("mode", RESTARTS)
def test_what_cannot_be_restarted_is_left_out_and_the_rest_applied(mode: MigrationMode) -> None:
    plan, (left_out,) = restartable_part(replace(BOTH, mode=mode), NOW, {"plain"})
    assert (left_out.topology, left_out.code) == ("plain", RefusalCode.MODE_IMPOSSIBLE)
    assert left_out.reason == "plain cannot be restarted here: start it with barograph.start"
    assert (plan.placement, plan.cuts) == (Placement({KEPT: N3}), ("kept",))
    assert plan.rescales == (Rescale("kept", "a", 3),)
    assert plan.limits_pct == {Instance("plain", "a", i): 45.0 for i in range(2)}, "for the instances that it keeps"
    assert impossible(plan, (left_out,)) == ()


@pytest.mark.parametrize("mode", [m for m in MigrationMode if m not in RESTARTS])
def test_other_modes_restart_no_query(mode: MigrationMode) -> None:
    plan = replace(BOTH, mode=mode)
    assert restartable_part(plan, NOW, {"plain"}) == (plan, ())


def test_a_worker_under_a_topology_that_cannot_be_restarted_is_not_replaced() -> None:
    to_it, from_it = (
        Plan(Placement({KEPT: N2}), mode=MigrationMode.WORKER),
        replace(NOW, placement=Placement({**HERE["kept"], KEPT: N2, **HERE["plain"]})),
    )
    plan, (left_out,) = restartable_part(to_it, NOW, {"plain"})
    assert not plan.placement and left_out.topology == "kept"
    assert left_out.reason.startswith("it replaces worker n2/0, and plain there cannot be restarted here")
    _, left = restartable_part(Plan(Placement({KEPT: N3}), mode=MigrationMode.WORKER), from_it, {"plain"})
    assert [r.topology for r in left] == ["kept"]
    query = replace(to_it, mode=MigrationMode.RESTART_QUERY)
    assert restartable_part(query, NOW, {"plain"}) == (query, ()), "no worker ends"


def test_a_plan_of_which_nothing_is_left_is_refused() -> None:
    why = (Refusal("changes of plain", RefusalCode.MODE_IMPOSSIBLE, "no", topology="plain"),)
    assert impossible(Plan(), why) == why
    for rest in (Plan(limits_pct={KEPT: 5.0}), Plan(shares_pct={KEPT: 5.0}), Plan(rests=()), Plan(cuts=("kept",))):
        assert impossible(rest, why) == ()
    assert impossible(Plan(), ()) == ()
    (refusal,) = impossible(replace(BOTH, mode=MigrationMode.RESTART_APP), ())
    assert (refusal.what, refusal.code) == ("mode restart-app", RefusalCode.MODE_IMPOSSIBLE)


def test_limits_that_cannot_be_enforced_are_left_out_of_a_plan() -> None:
    assert enforceable(LIMIT, "") == (LIMIT, ())
    plan, (left_out,) = enforceable(LIMIT, "there are no control groups")
    assert plan == Plan(cuts=("wordcount",))
    assert (left_out.code, left_out.reason) == (RefusalCode.NO_LIMITS, "there are no control groups")
    assert enforceable(plan, "there are no control groups") == (plan, ())


def test_only_failed_restarts_are_refusals() -> None:
    plan = Plan(mode=MigrationMode.WORKER)
    (refusal,) = failed_restarts(plan, {"wordcount": "", "other": "its epoch did not end"})
    assert (refusal.what, refusal.reason) == (f"{plan.mode} of other", "its epoch did not end")
    assert (refusal.topology, refusal.code) == ("other", RefusalCode.RESTART_FAILED)
    assert failed_restarts(plan, {"wordcount": "", "other": ""}, ["wordcount", "other"]) == ()


def test_topologies_that_are_restarted_together_fail_together() -> None:
    problems = {"wordcount": "", "workers": "no new ones came up"}
    (refusal,) = failed_restarts(Plan(mode=MigrationMode.WORKER), problems, ["wordcount"])
    assert (refusal.topology, refusal.reason) == ("wordcount", "workers: no new ones came up")
