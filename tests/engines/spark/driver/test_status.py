"""What a driver says of its topologies: what is not known is None, never 0."""

from dataclasses import replace

import pytest
from tests.cycles import WORD_COUNT, seen, work

from barograph.engines.spark.driver.status import _topology
from barograph.model import Metrics, TopologyMetrics


@pytest.mark.parametrize(("told", "shown"), [(True, 0.0), (False, None)])
def test_the_backlog_of_a_source_that_does_not_tell_what_is_due_is_unknown(told: bool, shown: float | None) -> None:
    now = seen(WORD_COUNT, {"spout": work(40)})
    now = replace(now, topology_metrics=(TopologyMetrics("wc", backlog_known=told),))
    found = _topology(now, "wc", None, 0.0)
    assert found["backlog_rows"] == shown
    assert found["in_rows_s"] == 4.0


def test_figures_have_an_age_and_what_was_never_reported_has_none() -> None:
    now = seen(WORD_COUNT, {"spout": work(40)})
    now = replace(now, topology_metrics=(TopologyMetrics("wc", age_s=4.52),))
    assert _topology(now, "wc", None, 0.0)["age_s"] == 4.5
    assert _topology(replace(now, metrics=Metrics(())), "wc", None, 0.0)["age_s"] is None
