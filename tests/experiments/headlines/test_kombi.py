"""Kombi et al.'s headlines: short runs in every test run, all of them in the slow tests."""

from dataclasses import replace

import pytest
from tests.headlines import require_headlines

from barograph.control.policy_in_sim import rehearse
from barograph.engines.sim import Result, find
from barograph.experiments.headlines.kombi import PAPER


def short(scenario: str, policy: str, seconds: float) -> Result:
    options = {"declared_first": True} if policy == "even" else {}
    begin = replace(find(f"autoscale-{scenario}"), duration_s=seconds, step_s=0.5)
    return rehearse(begin, policy, options=options)


def test_a_sudden_peak_is_answered() -> None:
    """80 rows a second from 480 s on: one sink does 12.5 of them, so without an answer 16,200 would wait at 720 s."""
    autoscale = short("5-step/conf-min", "autoscale", 720.0)
    assert autoscale.operators["5-step/sink"].instances[-1] == 8
    assert autoscale.topologies[0].unread_rows < 0.5 * 16_200


def test_an_experts_degrees_are_given_up_while_the_rate_is_low_and_all_gathers_on_one_machine() -> None:
    storm, autoscale = (short("3-step/conf-expt", policy, 200.0) for policy in ("even", "autoscale"))
    series = autoscale.operators["3-step/sink"]
    sink = dict(zip(series.at_s, series.instances, strict=True))
    assert [sink[at_s] for at_s in (0.0, 50.0, 60.0)] == [8, 8, 1]  # not before a whole window was measured
    assert (autoscale.nodes_max, autoscale.nodes_min) == (4, 1)
    assert autoscale.cpu_reserved_s < 0.6 * storm.cpu_reserved_s
    assert autoscale.memory_reserved_mb < 0.6 * storm.memory_reserved_mb
    assert autoscale.refused == 0


STRICT = (
    "rows that still wait at the end",
    "dephased rows",
    "degree of the sink over time",
    "3-step ConfExpt: CPU that AUTOSCALE saves",
    "3-step ConfExpt: memory that AUTOSCALE saves",
    "degree of the sink after the first peak",
    "over actual needs",
    "advertising ConfExpt: CPU that AUTOSCALE saves",
    "supervisors, at the fewest",
    "rows completed, AUTOSCALE / Storm",
    "if a spout that stands still makes no rows",
    "rows and latency",
    "rows lost",
)


@pytest.mark.slow
def test_every_headline_is_met_or_has_a_cause() -> None:
    require_headlines(PAPER, STRICT)
