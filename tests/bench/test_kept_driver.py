"""A driver that is killed with -9 is started again by ``barograph keep`` and goes on from its checkpoint, exactly."""

import os
import random
from pathlib import Path

import pytest
from bench._soak.faults import kill_driver
from bench._soak.world import left_over, open_world

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk is mounted, which takes root")
def test_a_killed_driver_goes_on_exactly(tmp_path: Path) -> None:
    with open_world(tmp_path, collect=False) as world:
        first = world.flow().pid
        kill_driver(world, random.Random(1))
        assert world.flow().pid != first
        verdict = world.finish()
        run, seen = world.cluster.run, world.seen
    assert verdict.exact, verdict
    assert verdict.due > 0
    assert left_over(run, seen) == []
    assert "the program ended by SIGKILL" in world.log.read_text()
