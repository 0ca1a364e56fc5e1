"""Moves as Storm makes them: workers are replaced at once; rows in flight and rows due meanwhile fail."""

import pytest

from barograph.engines.sim import Simulator, parse_scenario
from barograph.engines.sim.result import Result, result
from barograph.model import Instance, MigrationMode, Placement, Plan, Slot

STORM = """
name = "storm"
title = "a sink that is behind, on two nodes"
duration_s = 100
epoch_s = 3600
moves_fail_rows = true
calibration = {in_flight_s = 5, executor_start_s = 2}
[[nodes]]
name = "node"
count = 2
cpu_pct = 100
seats = 4
[[topologies]]
name = "t"
operators = [
  {name = "source", parallelism = 1, load = "constant 100", cost_ms = 0.1},
  {name = "sink", parallelism = 1, cost_ms = 12.5, stateful = true},
]
edges = [{source = "source", target = "sink", selectivity = 1}]
"""
MOVE = Placement({Instance("t", "sink", 0): Slot("node-1")})


def moved(grain: str, mode: MigrationMode, text: str = STORM) -> tuple[Simulator, Result, float]:
    """The sink does 80 rows a second of 100; after 10 s it is moved, after 20 s the run ends."""
    engine = Simulator(parse_scenario(text, "storm"), grain=grain)
    engine.apply(Plan(Placement({i: Slot("node-2") for i in engine.layout.instances})))
    engine.advance(10.0)
    outcome = engine.apply(Plan(MOVE, mode=mode))
    assert outcome.ok
    assert outcome.order_to_commit_s is not None
    engine.advance(20.0 - engine.now_s)
    engine.close()
    return engine, result(engine, ""), outcome.order_to_commit_s


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_rows_in_flight_and_rows_due_in_the_move_fail_and_all_others_end_once(grain: str) -> None:
    engine, found, took_s = moved(grain, MigrationMode.WORKER)
    assert 2.0 < took_s < 4.0  # it waits for no row in flight
    behind = 0.2 * 100 * 10  # rows in flight when the move begins
    assert found.failed_rows == pytest.approx(behind + 100 * took_s, rel=0.1)
    (topology,) = found.topologies
    assert topology.failed_rows == found.failed_rows
    due = 100 * engine.now_s
    assert found.completed_rows + found.failed_rows + topology.unread_rows == pytest.approx(due, abs=2)
    assert found.lost_rows == found.replayed_rows == 0
    assert found.from_read_ms.max < 5_500  # sources go on with what falls due, so only later rows wait


@pytest.mark.parametrize("grain", ["rows", "flows"])
def test_other_modes_and_other_scenarios_fail_nothing(grain: str) -> None:
    for mode, text in (
        (MigrationMode.CUT, STORM),
        (MigrationMode.WORKER, STORM.replace("moves_fail_rows = true", "moves_fail_rows = false")),
    ):
        engine, found, _ = moved(grain, mode, text)
        assert found.failed_rows == 0
        unread = found.topologies[0].unread_rows
        assert found.completed_rows + unread == pytest.approx(100 * engine.now_s, abs=2)
