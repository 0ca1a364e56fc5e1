"""Chakraborty's headlines: a few batches in every test run, all of them in the slow tests."""

import pytest
from tests.headlines import require_headlines

from barograph.engines.sim import Result, find, shipped
from barograph.experiments.headlines.chakraborty import FIGURE_35, PAPER, _able_rows_s, _two_on_a_node
from barograph.experiments.headlines.headline import Case, run_case
from barograph.model.loads.shapes import InBatches


def brief(policy: str, variant: str = "") -> Result:
    """Batches 0 to 10; from batch 8 on they are events."""
    return run_case(Case(policy, f"priority-1{variant}", policy, seconds=660.0))


def event_latency_s(result: Result) -> float:
    assert result.priority is not None and result.priority.event_latency_s is not None
    return result.priority.event_latencies_s[-1]


def test_dynamic_priorities_find_events_sooner_and_static_ones_change_nothing() -> None:
    sps, dps = brief("sps", "/two-threads"), brief("dps", "/two-threads")
    assert event_latency_s(dps) < 0.75 * event_latency_s(sps)
    assert (sps.reconfigurations, sps.moves) == (0, 0)
    assert sps.priority is not None and sps.priority.overheads == ()
    assert dps.reconfigurations == 1
    assert [t.starved_s > 100 for t in dps.topologies] == [False, False, True, True]
    assert sps.lost_rows == dps.lost_rows == 0


def test_the_thesis_can_be_read_back_from_its_own_figures() -> None:
    assert [round(_able_rows_s(t_t_s, r1), 1) for r1, t_t_s in ((0.2, 7.904), (0.5, 46.799), (0.8, 118.958))] == (
        pytest.approx([42.2, 42.7, 42.7])
    )
    assert [_two_on_a_node(*figure) for figure in FIGURE_35] == pytest.approx([1.38, 1.56, 1.22], abs=0.01)


@pytest.mark.parametrize("name", [name for name in shipped() if name.startswith("priority-1")])
def test_a_run_lasts_until_an_archive_that_starved_can_have_caught_up(name: str) -> None:
    scenario = find(name)
    archive = scenario.workloads[2]
    load = archive.work["source"].load
    assert load is not None
    end_s = scenario.duration_s
    rows = load.schedule(end_s).rows_by(end_s)
    cost_s = sum(w.cost_s for w in archive.work.values())
    instances = archive.topology.operator("archive").parallelism
    assert scenario.workloads[0].trigger is not None and scenario.workloads[0].trigger.events is not None
    first, end = scenario.workloads[0].trigger.events
    assert isinstance(load.shape, InBatches)
    starved_s = (end - first) * load.shape.every_s
    # two instances are on one of its nodes: each has half of the core
    assert 2 * rows / instances * cost_s / 0.95 < end_s - starved_s


STRICT = (
    "with two threads",
    "archival topologies starve",
    "and recover",
    "nothing starves",
    "24 nodes",
    "DPS moved as by Storm: O",
    "DPS moved as by Storm: T_T of TP1, r1 = 0.5",
    "DPS moved as by Storm: T_T of TP1, r1 = 0.8",
    "T_T of TP1, r1 = 0.5, DPS moved",
    "SPS: T_T from r1",
    "from drained to resumed",
    "triggers change nothing",
    "rows lost or repeated",
)


@pytest.mark.slow
def test_every_headline_is_met_or_has_a_cause() -> None:
    require_headlines(PAPER, STRICT)
