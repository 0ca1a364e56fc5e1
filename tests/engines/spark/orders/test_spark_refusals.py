"""What the Spark engine refuses on any cluster, and how failed restarts are reported."""

import pytest

from barograph.engines.spark.orders.spark_refusals import failed_restarts, unsupported
from barograph.model import Instance, MigrationMode, Plan, RefusalCode

LIMIT = Plan(limits_pct={Instance("wordcount", "split", 0): 50.0})
CASES = {  # the plan, whether CPU can be limited, topologies that cannot be restarted, the codes
    "a limit": (LIMIT, True, (), []),
    "a limit without control groups": (LIMIT, False, (), [RefusalCode.NO_LIMITS]),
    "a restart of the application": (Plan(mode=MigrationMode.RESTART_APP), True, (), [RefusalCode.MODE_IMPOSSIBLE]),
    "a restart of a supervised query": (
        Plan(cuts=("wordcount",), mode=MigrationMode.RESTART_QUERY), True, ("other",), [],
    ),
    "a restart of an unsupervised query": (
        Plan(cuts=("wordcount",), mode=MigrationMode.RESTART_QUERY), True, ("wordcount",),
        [RefusalCode.MODE_IMPOSSIBLE],
    ),
    "a cut of an unsupervised query": (Plan(cuts=("wordcount",), mode=MigrationMode.CUT), True, ("wordcount",), []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_unsupported_changes(case: str) -> None:
    plan, limited, unsupervised, codes = CASES[case]
    assert [r.code for r in unsupported(plan, limited, unsupervised)] == codes


def test_only_failed_restarts_are_refusals() -> None:
    plan = Plan(mode=MigrationMode.WORKER)
    (refusal,) = failed_restarts(plan, {"wordcount": "", "workers": "no new ones came up"})
    assert (refusal.what, refusal.reason) == (f"{plan.mode} of workers", "no new ones came up")
