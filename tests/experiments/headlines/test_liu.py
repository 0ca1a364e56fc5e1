"""Liu et al.'s headlines: short runs in every test run, all of them in the slow tests."""

from dataclasses import replace

import pytest
from tests.headlines import require_headlines

from barograph.control.policy_in_sim import rehearse
from barograph.engines.sim import Result, find
from barograph.experiments.headlines.liu import PAPER


def short(scenario: str, policy: str, duration_s: float, **options: object) -> Result:
    return rehearse(replace(find(scenario), duration_s=duration_s), policy, options=options, grain="flows")


@pytest.mark.parametrize("policy", ["r-storm", "fixed"])
@pytest.mark.parametrize(("declared", "nodes"), [(30, 1), (70, 2)])
def test_declared_shares_decide_the_placement_and_the_run_begins_there(policy: str, declared: int, nodes: int) -> None:
    found = short(f"wordcount-regular/declared-{declared}", policy, 25.0)
    assert (found.nodes_mean, found.nodes_max, found.workers_max, found.moves) == (nodes, nodes, nodes, 0)


@pytest.mark.parametrize("other", ["liu", "adaptive"])
def test_equal_shares_reserve_as_much_as_the_run_they_are_learned_from(other: str) -> None:
    duration_s = 100.0  # a third of the way to the peak, so that shares change
    scheme = short("wordcount-regular/storm", other, duration_s)
    equal = short("wordcount-regular/storm", "fixed-equal", duration_s, learns_from=other)
    assert equal.cpu_reserved_s == pytest.approx(scheme.cpu_reserved_s, rel=0.03)
    assert equal.moves == 0


def test_the_scheme_follows_the_load_and_uses_two_workers_on_a_node() -> None:
    found = short("wordcount-regular/storm", "liu", 300.0)
    assert found.workers_max == found.nodes_max + 1 == 3  # stateful instances stay on one node
    split = found.operators["wordcount/split"]
    assert split.limit_pct == split.reserved_pct
    assert split.reserved_pct[-1] > 2 * split.reserved_pct[1]
    assert split.predicted_rows_per_s[-1] == pytest.approx(split.arrived_rows_per_s[-1], rel=0.1)


def test_limits_protect_a_from_b() -> None:
    """B's load is at its peak after 150 s."""
    free, held = (short("interference/storm", policy, 180.0).topologies[0] for policy in ("r-storm", "fixed"))
    assert free.name == held.name == "a"
    assert free.from_read_ms.mean > 5 * held.from_read_ms.mean
    assert free.from_read_ms.p99 > 5 * held.from_read_ms.p99


STRICT = (
    "regular, scheme: complete time",
    "R-Storm(30): complete time",
    "R-Storm(70): complete time",
    "avg: complete time",
    "regular: order of complete times",
    "HTTP: order of complete times",
    "mean nodes",
    "mean workers",
    "R-Storm(30): rows completed",
    "nodes by declared share",
    "A beside B",
    "figure 8",
    "rows not accounted for",
)


@pytest.mark.slow
def test_every_headline_is_met_or_has_a_cause() -> None:
    require_headlines(PAPER, STRICT)
