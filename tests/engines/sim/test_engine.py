"""How long changes stop rows, what the loss of a node costs, and how shares and full nodes limit speed."""

import pytest

from barograph.engines.sim import Simulator, parse_scenario, read_calibration
from barograph.model import Instance, MigrationMode, Placement, Plan, Rescale, Slot

PLAIN = """
name = "plain"
title = "source and sink on two nodes"
duration_s = 1000
epoch_s = 900
[[nodes]]
name = "node"
count = 2
cpu_pct = 100
seats = 4
[[topologies]]
name = "t"
operators = [
  {name = "source", parallelism = 1, load = "constant 100", cost_ms = 0.1},
  {name = "sink", parallelism = 2, cost_ms = 2, stateful = true, state_mb = 100, max_parallelism = 4},
]
edges = [{source = "source", target = "sink", grouping = "fields"}]
"""
CAL = read_calibration()
SINK = Instance("t", "sink", 0)


def plain(text: str = PLAIN, grain: str = "rows") -> Simulator:
    engine = Simulator(parse_scenario(text, "plain"), 1, grain=grain)
    engine.advance(5.0)
    return engine


def elsewhere(engine: Simulator) -> Plan:
    slot = Slot("node-2" if engine.layout.placement[SINK].node == "node-1" else "node-1")
    return Plan(Placement({SINK: slot}))


STATE_S = CAL.state_load_s + 100 / CAL.state_load_mb_per_s
STOPS = {
    MigrationMode.WARM_CUT: CAL.boundary_s,
    MigrationMode.CUT: CAL.boundary_s + STATE_S,
    MigrationMode.RESTART_QUERY: CAL.boundary_s + STATE_S + CAL.query_restart_s,
    MigrationMode.WORKER: CAL.boundary_s + STATE_S + CAL.executor_start_s + CAL.query_restart_s,
    MigrationMode.RESTART_APP: CAL.boundary_s + STATE_S + CAL.app_restart_s,
}


@pytest.mark.parametrize("mode", STOPS)
def test_a_move_stops_the_topology_for_as_long_as_its_mode_says(mode: MigrationMode) -> None:
    engine = plain()
    outcome = engine.apply(Plan(elsewhere(engine).placement, mode=mode))
    assert outcome.ok
    assert engine.totals.stopped_s[0] == pytest.approx(STOPS[mode], abs=0.1)  # steps are 0.06 s while it drains
    assert outcome.order_to_commit_s is not None
    prepared_s = CAL.cold_start_s + STATE_S if mode is MigrationMode.WARM_CUT else 0.0
    assert outcome.order_to_commit_s == pytest.approx(STOPS[mode] + CAL.cut_order_s + prepared_s, abs=0.2)


@pytest.mark.parametrize("at_s", [7.9, 8.0, 8.2], ids=["before", "at the end", "while it stands still"])
def test_a_move_costs_the_same_where_an_epoch_ends_anyway(at_s: float) -> None:
    engine = plain(PLAIN.replace("epoch_s = 900", "epoch_s = 8"))
    engine.advance(at_s - 5.0)
    outcome = engine.apply(Plan(elsewhere(engine).placement, mode=MigrationMode.RESTART_APP))
    assert outcome.order_to_commit_s is not None
    assert outcome.order_to_commit_s == pytest.approx(STOPS[MigrationMode.RESTART_APP], abs=0.5)


def test_a_boundary_move_waits_for_the_epoch_and_stops_nothing_more() -> None:
    engine = plain(PLAIN.replace("epoch_s = 900", "epoch_s = 8"))
    before = engine.layout.placement
    wanted = elsewhere(engine).placement
    assert engine.apply(Plan(wanted, mode=MigrationMode.BOUNDARY)).ok
    assert engine.layout.placement == before
    engine.advance(6.0)
    assert engine.layout.placement == Placement({**before.slots, **wanted.slots}) != before


def test_a_stateful_operator_is_repartitioned_and_keeps_its_state() -> None:
    engine = plain()
    assert engine.apply(Plan(rescales=(Rescale("t", "sink", 4),))).ok
    at_least = CAL.boundary_s + CAL.repartition_s + 200 / CAL.repartition_mb_per_s + CAL.query_restart_s
    assert engine.totals.stopped_s[0] >= at_least
    assert engine.topologies[0].operator("sink").state_mb == 50


def test_moving_many_costs_one_cut() -> None:
    engine = plain()
    swapped = {i: Slot("node-2" if s.node == "node-1" else "node-1") for i, s in engine.layout.placement.slots.items()}
    assert engine.apply(Plan(Placement(swapped), mode=MigrationMode.WARM_CUT)).ok
    assert engine.states[0].epoch == 1


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_a_dead_worker_costs_the_open_epoch_and_its_instances_go_elsewhere(grain: str) -> None:
    engine = plain(grain=grain)
    version = engine.version
    engine.lose("node-1")
    assert engine.totals.replayed_rows[0] == pytest.approx(500, rel=0.02)
    engine.advance(20.0)
    assert {s.node for s in engine.layout.placement.slots.values()} == {"node-2"}
    assert engine.version > version
    assert engine.observe().topology_metrics[0].backlog_rows < 5
    assert [n.name for n in engine.observe().nodes] == ["node-2"]


def test_without_seats_a_topology_stands_still_until_the_worker_is_back() -> None:
    engine = plain(PLAIN.replace("seats = 4", "seats = 2"))
    engine.lose("node-1", back_s=10.0)
    engine.observe()
    engine.advance(9.0)
    assert engine.observe().topology_metrics[0].completed_rows == 0
    engine.advance(30.0)
    assert engine.observe().topology_metrics[0].backlog_rows < 5
    assert engine.grain.unaccounted(engine.now_s) == 0


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_a_share_bounds_what_an_instance_uses(grain: str) -> None:
    engine = plain(grain=grain)
    engine.apply(Plan(limits_pct={Instance("t", "sink", 0): 5.0}))
    engine.observe()
    engine.advance(10.0)
    seen = engine.observe()
    assert seen.metrics.row(SINK).cpu_s == pytest.approx(0.5, rel=0.05)
    assert seen.topology_metrics[0].backlog_rows > 100  # it waits at the source, not in between
    assert sum(seen.metrics.row(Instance("t", "sink", i)).pending for i in range(2)) < 100


@pytest.mark.parametrize("enforce", [True, False])
def test_a_limit_that_nothing_enforces_does_not_refuse_a_plan(enforce: bool) -> None:
    engine = plain(PLAIN.replace("epoch_s = 900", f"epoch_s = 900\nenforce = {str(enforce).lower()}"))
    outcome = engine.apply(Plan(elsewhere(engine).placement, limits_pct={SINK: 200.0}))
    assert (outcome.ok, outcome.moves) == (not enforce, int(not enforce))


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_a_full_node_gives_no_more_than_it_has(grain: str) -> None:
    engine = plain(PLAIN.replace("constant 100", "constant 2000"), grain)
    engine.apply(Plan(Placement({i: Slot("node-1") for i in engine.layout.placement})))
    engine.observe()
    engine.advance(20.0)
    seen = engine.observe()
    (used,) = (m.cpu_used_s for m in seen.node_metrics if m.node == "node-1")
    assert used <= 20.0 * 1.02
    assert used >= 20.0 * (1 - CAL.contention_loss) * 0.9
    blocked = seen.metrics.of_operator("t", "source").blocked_s
    assert blocked > 1.0
