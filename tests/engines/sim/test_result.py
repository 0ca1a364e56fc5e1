"""What a run reports: CPU reserved, limited and used; workers; traffic; each operator over time."""

import pytest

from barograph.control.policy_in_sim import rehearse
from barograph.engines.sim import Simulator, parse_scenario
from barograph.model import Instance, Placement, Plan, Slot

TWO_NODES = """
name = "two"
title = "two operators on two nodes"
duration_s = 60
[[nodes]]
name = "node"
count = 2
cpu_pct = 100
[[topologies]]
name = "t"
operators = [
  {name = "source", parallelism = 1, load = "constant 100", cost_ms = 1, memory_mb = 100},
  {name = "sink", parallelism = 1, cost_ms = 2, memory_mb = 200},
]
edges = [{source = "source", target = "sink"}]
"""
SOURCE, SINK = Instance("t", "source", 0), Instance("t", "sink", 0)


def simulator(grain: str, apart: bool) -> Simulator:
    engine = Simulator(parse_scenario(TWO_NODES, "two"), grain=grain)
    places = {SOURCE: Slot("node-1"), SINK: Slot("node-2" if apart else "node-1")}
    assert engine.apply(Plan(Placement(places), shares_pct={SOURCE: 20.0, SINK: 30.0}, limits_pct={SINK: 50.0})).ok
    return engine


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_shares_are_reserved_and_limits_are_what_may_be_used(grain: str) -> None:
    engine = simulator(grain, apart=True)
    engine.advance(10.0)
    engine.close()
    totals = engine.totals
    assert totals.cpu_reserved_s == pytest.approx(10 * 0.5)
    assert totals.cpu_limit_s == pytest.approx(10 * 1.5)
    assert totals.cpu_used_s == pytest.approx(10 * 0.3, rel=0.05)
    assert totals.memory_mb_s == pytest.approx(10 * 300)
    assert totals.node_s == totals.worker_s == pytest.approx(20.0)


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_traffic_counts_by_where_instances_were_while_rows_were_sent(grain: str) -> None:
    engine = simulator(grain, apart=True)
    engine.advance(10.0)
    far = engine.totals
    assert engine.apply(Plan(Placement({SINK: Slot("node-1")}))).ok
    moved_s = engine.now_s
    engine.advance(20.0)
    engine.close()
    assert (far.nodes_min, far.nodes_max) == (1, 2)
    assert far.sent_rows == pytest.approx(100 * engine.now_s, rel=0.02)
    assert far.between_nodes_rows == pytest.approx(100 * moved_s, rel=0.1)
    assert far.between_workers_rows == far.between_nodes_rows


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_throughput_is_counted_in_rows_at_sinks_and_in_source_rows(grain: str) -> None:
    text = TWO_NODES.replace('target = "sink"}', 'target = "sink", selectivity = 0.4}')
    found = rehearse(parse_scenario(text, "two"), "even", grain=grain)
    assert found.throughput_rows_per_s == pytest.approx(40, rel=0.02)
    assert found.source_rows_per_s == pytest.approx(100, rel=0.02)
    assert found.topologies[0].source_rows_per_s == found.source_rows_per_s


def test_each_operator_has_a_series_over_the_cycles() -> None:
    found = rehearse(parse_scenario(TWO_NODES, "two"), "liu")
    assert set(found.operators) == {"t/source", "t/sink"}
    sink = found.operators["t/sink"]
    assert sink.at_s[:3] == [0.0, 10.0, 20.0]
    assert sink.arrived_rows_per_s[-1] == pytest.approx(100, rel=0.05)
    assert sink.predicted_rows_per_s[-1] == pytest.approx(100, rel=0.05)
    assert sink.used_pct[-1] == pytest.approx(20, rel=0.1)
    assert sink.reserved_pct[-1] == sink.limit_pct[-1] == 40.0
    assert found.traffic.inter_node_share in (0.0, 1.0)
