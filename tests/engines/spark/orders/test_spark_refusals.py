"""What the Spark engine refuses on any cluster, and how failed restarts are reported."""

import pytest

from barograph.engines.spark.orders.spark_refusals import enforceable, failed_restarts, unsupported
from barograph.model import Instance, MigrationMode, Plan, RefusalCode

LIMIT = Plan(limits_pct={Instance("wordcount", "split", 0): 50.0}, cuts=("wordcount",))
CASES = {  # the plan, topologies that cannot be restarted, the codes
    "a limit": (LIMIT, (), []),
    "a restart of the application": (Plan(mode=MigrationMode.RESTART_APP), (), [RefusalCode.MODE_IMPOSSIBLE]),
    "a restart of a supervised query": (Plan(cuts=("wordcount",), mode=MigrationMode.RESTART_QUERY), ("other",), []),
    "a restart of an unsupervised query": (
        Plan(cuts=("wordcount",), mode=MigrationMode.RESTART_QUERY), ("wordcount",), [RefusalCode.MODE_IMPOSSIBLE],
    ),
    "a cut of an unsupervised query": (Plan(cuts=("wordcount",), mode=MigrationMode.CUT), ("wordcount",), []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_unsupported_changes(case: str) -> None:
    plan, unsupervised, codes = CASES[case]
    assert [r.code for r in unsupported(plan, unsupervised)] == codes


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
