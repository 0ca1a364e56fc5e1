"""The headlines of Aniello et al. The first tests check a few of the runs; the slow test checks all, in a minute."""

from functools import cache

import pytest

from barograph.control.policy_in_sim import rehearse
from barograph.engines.sim import CycleResult, Result, find
from barograph.experiments.headlines.aniello import DEFAULT, OFFLINE, ONLINE, PAPER, mean_latency_ms, settled
from barograph.experiments.headlines.headline import check


@cache
def ran(scenario: str, policy: str) -> Result:
    return rehearse(find(scenario), policy)


@pytest.mark.parametrize("scenario", ["chain-over-time", "chain-stages/s3-r2", "debs-2013"])
def test_online_is_below_offline_is_below_default(scenario: str) -> None:
    latency, traffic = zip(*(settled(ran(scenario, policy)) for policy in (ONLINE, OFFLINE, DEFAULT)), strict=True)
    assert latency[0] < latency[1] < latency[2]
    assert traffic[0] < traffic[1] < traffic[2]


def test_online_reschedules_once_at_40_s_and_is_silent_for_about_10_s() -> None:
    online, default = ran("chain-over-time", ONLINE), ran("chain-over-time", DEFAULT)
    before = [[c.from_read_ms for c in run.over_time if c.at_s <= 40] for run in (online, default)]
    assert before[0] == before[1]
    assert online.reconfigurations == 1
    assert 5 < online.topologies[0].stopped_s - default.topologies[0].stopped_s < 20


@pytest.mark.parametrize("policy", [OFFLINE, "t-storm", "n-storm"])
def test_no_baseline_moves_in_every_cycle_or_never_places(policy: str) -> None:
    run = ran("debs-2013", policy)
    assert run.reconfigurations <= 1
    assert run.nodes_max == 8
    assert run.refused == 0
    assert run.late_rows == 0


def test_the_mean_latency_is_over_rows() -> None:
    cycles = [
        CycleResult(10, 100, 9.0, 1.0, 0.0),
        CycleResult(20, 300, 9.0, 5.0, 0.0),
        CycleResult(30, 0, None, None, 0),
    ]
    assert mean_latency_ms(cycles) == pytest.approx(4.0)


@pytest.mark.slow
def test_every_headline_is_met() -> None:
    found = check(PAPER)
    assert len(found) > 40
    assert [f"{h.what}: stated {h.stated}, ours {h.ours}" for h in found if not h.met] == []
