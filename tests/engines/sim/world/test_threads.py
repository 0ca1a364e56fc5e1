"""Threads that send for a worker, and sources that generate their rows themselves."""

from dataclasses import replace

import numpy as np
import pytest

from barograph.engines.sim import KeepPlacement, Result, Simulator, parse_scenario, run
from barograph.engines.sim.world.threads import SendingThreads
from barograph.model import Instance, Placement, Plan, Slot

SPLIT = """
name = "split"
title = "a source and a sink"
duration_s = 30
nodes = [{name = "n", count = 2, cpu_pct = 400}]
[[topologies]]
name = "t"
operators = [
  {name = "source", parallelism = 1, load = "constant 500", live = true, cost_ms = 0.01},
  {name = "sink", parallelism = 1, cost_ms = 0.01},
]
edges = [{source = "source", target = "sink"}]
"""
GRAINS = pytest.mark.parametrize("grain", ["rows", "flows"])


def simulator(grain: str, row_us: float, apart: bool = True, text: str = SPLIT) -> Simulator:
    engine = Simulator(replace(parse_scenario(text, "split"), send_thread_s=row_us / 1e6), grain=grain)
    places = {Instance("t", "source", 0): Slot("n-1"), Instance("t", "sink", 0): Slot("n-2" if apart else "n-1")}
    assert engine.apply(Plan(Placement(places))).ok
    return engine


def ran(grain: str, row_us: float, apart: bool = True) -> Result:
    return run(simulator(grain, row_us, apart), KeepPlacement())


def test_the_wait_follows_from_how_busy_the_thread_is() -> None:
    threads = SendingThreads(2, 1e-3)
    for _ in range(100):
        threads.sent(np.array([50.0, 0.0]), 0.1)  # 500 rows/s of 1 ms: half of the time
    assert threads.wait_s == pytest.approx([1e-3 * 0.5 / (2 * 0.5), 0.0], rel=1e-3)


def test_what_cannot_be_sent_in_time_adds_up_and_goes_when_there_is_time() -> None:
    threads = SendingThreads(1, 1e-3)
    for _ in range(10):
        threads.sent(np.array([200.0]), 0.1)  # twice what it can do
    assert threads.wait_s[0] == pytest.approx(1.0)
    for _ in range(200):
        threads.sent(np.array([0.0]), 0.1)
    assert threads.wait_s[0] == pytest.approx(0.0, abs=1e-6)


@GRAINS
def test_only_rows_that_leave_their_worker_wait(grain: str) -> None:
    without, busy = ran(grain, 0), ran(grain, 1000)
    waited_ms = busy.from_read_ms.mean - without.from_read_ms.mean
    assert waited_ms == pytest.approx(1.0 * 0.5 / (2 * 0.5), rel=0.1)
    assert ran(grain, 1000, apart=False).from_read_ms.mean == ran(grain, 0, apart=False).from_read_ms.mean


@GRAINS
def test_a_source_that_makes_its_rows_makes_none_while_it_stands_still(grain: str) -> None:
    engine = simulator(grain, 0)
    engine.advance(10.0)
    assert engine.apply(Plan(Placement({Instance("t", "sink", 0): Slot("n-1")}))).ok
    engine.advance(10.0)
    engine.close()
    _, read = engine.totals.times(0)
    standing_s = engine.totals.stopped_s[0]
    assert standing_s > 0.3
    assert read.count <= 500 * (engine.now_s - standing_s) + 1
    assert read.count >= 500 * (engine.now_s - standing_s - 1.0)
    assert engine.grain.pending(engine.now_s)[0] <= 1
    assert engine.grain.unaccounted(engine.now_s) == 0
    due, _ = engine.totals.times(0)
    assert due.max_s < 0.1


@GRAINS
def test_rows_wait_for_any_other_source(grain: str) -> None:
    engine = simulator(grain, 0, text=SPLIT.replace("live = true, ", ""))
    engine.advance(10.0)
    assert engine.apply(Plan(Placement({Instance("t", "sink", 0): Slot("n-1")}))).ok
    engine.advance(10.0)
    engine.close()
    due, _ = engine.totals.times(0)
    assert due.count == pytest.approx(500 * engine.now_s, rel=0.02)
    assert due.max_s > 0.15


@GRAINS
def test_a_loss_reads_again_and_loses_nothing(grain: str) -> None:
    engine = simulator(grain, 0)
    engine.advance(5.0)
    engine.lose("n-2", back_s=1.0)
    engine.advance(10.0)
    engine.close()
    assert engine.grain.unaccounted(engine.now_s) == 0
