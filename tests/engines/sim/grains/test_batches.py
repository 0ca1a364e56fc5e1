"""When a batch is complete, by due times and by counts; T_E and T_T of runs small enough to compute by hand."""

import numpy as np
import pytest

from barograph.control.policy_in_sim import rehearse
from barograph.engines.sim import parse_scenario
from barograph.engines.sim.grains.batches import BatchProgress


def test_a_batch_is_through_when_its_last_row_is() -> None:
    batches = BatchProgress(every_s=10.0, within_s=1.0, count=3, rows=4.0)
    batches.ended(np.array([0.0, 0.5, 10.0]), np.array([3.0, 4.0, 14.0]))
    assert (batches.seen(0), batches.seen(1)) == (0.5, 0.25)
    batches.commit()
    batches.ended(np.array([0.2, 0.7]), np.array([9.0, 8.0]))
    assert batches.seen(0) == 1.0
    assert batches.times_s(15.0).tolist() == [8.0, 4.0], "the second is under way, the third not sent yet"
    batches.fail()
    assert batches.seen(0) == 0.5, "what was not committed comes again"
    batches.ended(np.array([0.2, 0.7]), np.array([19.0, 18.0]))
    assert batches.times_s(25.0).tolist() == [18.0, 14.0, 4.0]


def test_flows_count_rows_in_their_order() -> None:
    batches = BatchProgress(every_s=10.0, within_s=1.0, count=3, rows=4.0)
    batches.flowed(3.0, 2.0)
    batches.flowed(2.5, 3.0)
    assert [batches.seen(k) for k in range(3)] == [1.0, 0.375, 0.0]
    batches.flowed(100.0, 12.0)
    assert batches.times_s(30.0).tolist() == [2.0, 1.0, -9.0], "more rows than there are change nothing"


TWO = """
name = "two"
title = "two topologies that look for the same events, one of them slower"
duration_s = 100
epoch_s = 900
step_s = 0.25
nodes = [{name = "node", count = 3, cpu_pct = 400}]
"""
ONE = """
[[topologies]]
name = "NAME"
level = 1
producers = 2
trigger = {events = [2, 4]}
operators = [
  {name = "source", parallelism = 2, load = "batches rows=20 every=20s count=4 within=0.5s", cost_ms = 0.01},
  {name = "detect", parallelism = 2, cost_ms = COST},
]
edges = [{source = "source", target = "detect", grouping = "direct"}]
"""
PLAIN = ONE.replace("trigger = {events = [2, 4]}\n", "").replace("level = 1", "level = 2")


def test_the_complex_event_is_known_when_the_later_raw_event_is() -> None:
    parts = ((ONE, "quick", "100"), (ONE, "slow", "300"), (PLAIN, "low", "200"))
    text = TWO + "".join(part.replace("NAME", name).replace("COST", cost) for part, name, cost in parts)
    found = rehearse(parse_scenario(text, "two"), "sps").priority
    assert found is not None
    # each instance has ten rows, which take 1, 3 and 2 s; the batch was sent 0.5 s after they began
    assert found.event_latencies_s == pytest.approx((2.5, 2.5), abs=0.05)
    assert found.event_latency_s == pytest.approx(2.5, abs=0.05)
    assert found.row_time_s == pytest.approx({1: (0.5 + 2.5) / 2 / 10, 2: 1.5 / 10}, abs=0.005)


def test_a_load_without_batches_has_the_mean_complete_time_and_a_run_without_triggers_nothing() -> None:
    steady = TWO + PLAIN.replace("NAME", "t").replace("COST", "50")
    steady = steady.replace("batches rows=20 every=20s count=4 within=0.5s", "steps 0s=4 50s=8")
    assert rehearse(parse_scenario(steady, "two"), "sps").priority is None
    watched = steady.replace("level = 2", "level = 2\ntrigger = {above_rows_s = 6}")
    found = rehearse(parse_scenario(watched, "two"), "sps")
    assert found.priority is not None and found.priority.event_latency_s is None
    assert found.priority.row_time_s == pytest.approx({1: found.complete_time_ms.mean / 1000}, abs=1e-4)
