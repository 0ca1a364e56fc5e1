"""N-Storm's worked example: which instances a new placement moves, and which ones each migration mode stops."""

import pytest

from barograph.engines.sim import Simulator, parse_scenario
from barograph.model import Instance, MigrationMode, Move, Placement, Plan, Slot

W1, W2, W3 = (Slot(f"w-{k}") for k in (1, 2, 3))
A0, A1, B0, B1, C0 = (Instance("t", name[0], int(name[1])) for name in ("A0", "A1", "B0", "B1", "C0"))
BEFORE = Placement({A0: W1, A1: W1, B0: W2, B1: W2, C0: W3})
AFTER = Placement({A0: W1, B1: W1, A1: W2, B0: W2, C0: W3})

# The example's topology, one beside it on w1 and one beside it on w3.
SCENARIO = """
name = "worked"
title = "three workers"
duration_s = 1000
epoch_s = 900
[[nodes]]
name = "w"
count = 3
cpu_pct = 400
seats = 4
[[topologies]]
name = "t"
operators = [
  {name = "A", parallelism = 2, load = "constant 20", cost_ms = 1},
  {name = "B", parallelism = 2, cost_ms = 1},
  {name = "C", parallelism = 1, cost_ms = 1},
]
edges = [{source = "A", target = "B"}, {source = "B", target = "C"}]
[[topologies]]
name = "on-w1"
operators = [{name = "s", parallelism = 1, load = "constant 20", cost_ms = 1}]
[[topologies]]
name = "on-w3"
operators = [{name = "s", parallelism = 1, load = "constant 20", cost_ms = 1}]
"""


def test_the_moves_are_what_differs() -> None:
    """w1 gets B1 and loses A1, w2 gets A1 and loses B1, nothing of w3 changes."""
    assert BEFORE.moves_to(AFTER) == (Move(A1, W1, W2), Move(B1, W2, W1))
    assert BEFORE.moves_to(BEFORE) == ()


def test_an_instance_more_is_a_move_too() -> None:
    assert Placement({A0: W1}).moves_to(Placement({A0: W1, A1: W1})) == (Move(A1, None, W1),)


# mode -> topologies that stand still, and instances that are on workers whose process is replaced
STOPS = {
    MigrationMode.RESTART_APP: ({"t", "on-w1", "on-w3"}, 0),
    MigrationMode.RESTART_QUERY: ({"t"}, 0),
    MigrationMode.WORKER: ({"t", "on-w1"}, 4),
    MigrationMode.CUT: ({"t"}, 0),
    MigrationMode.WARM_CUT: ({"t"}, 0),
}


@pytest.mark.parametrize("mode", STOPS)
def test_what_each_mode_stops(mode: MigrationMode) -> None:
    beside = {Instance("on-w1", "s", 0): W1, Instance("on-w3", "s", 0): W3}
    engine = Simulator(parse_scenario(SCENARIO, "worked"), grain="flows")
    assert engine.apply(Plan(Placement({**BEFORE.slots, **beside}))).ok
    engine.advance(10.0)
    before = {w.slot: w.executor for w in engine.observe().workers}
    assert engine.apply(Plan(AFTER, mode=mode)).ok
    now = engine.observe()
    topologies, replaced = STOPS[mode]
    assert {t.name for t, s in zip(engine.topologies, engine.totals.stopped_s, strict=True) if s > 0} == topologies
    new = {w.slot for w in now.workers if before[w.slot] != w.executor}
    assert sum(1 for i, s in BEFORE.slots.items() if s in new) == replaced
    assert engine.totals.moves == 2
    assert now.placement.of_topology("t") == AFTER
