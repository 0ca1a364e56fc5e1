"""Which way each policy moves on Spark: its paper's own, unless an option says otherwise."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cycles import word_count_cycles

from barograph.control.decide import decide
from barograph.experiments.steering.steering import Steering, read_steered
from barograph.history.write import Recorder
from barograph.model import BadInput, MigrationMode, Outcome
from barograph.policy.definition import options_of
from barograph.policy.registry import POLICIES, named


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "spark"])
def test_each_policy_moves_in_its_own_way(name: str) -> None:
    steering, own = Steering(name, release_after_s=None), options_of(POLICIES[name])["mode"]
    if own is MigrationMode.RESTART_APP:
        assert steering.migration == MigrationMode.RESTART_QUERY
        assert f"{name} moves by restart-app" in steering.instead and "restart-query" in steering.instead
    else:
        assert (steering.migration, steering.instead) == (own, "")
    assert options_of(steering.decider())["mode"] == steering.migration


@pytest.mark.parametrize("name", ["autoscale", "adaptive", "liu"])
def test_an_option_overrides_it_without_a_word(name: str) -> None:
    steering = Steering(name, options={"mode": "boundary"}, release_after_s=None)
    assert (steering.migration, steering.instead) == ("boundary", "")
    with pytest.raises(BadInput, match="cannot end the application it steers"):
        Steering(name, options={"mode": "restart-app"}, release_after_s=None)


def test_ways_that_are_met_on_spark() -> None:
    """Not all the same: else a comparison of policies would not compare what their papers built."""
    found = {Steering(name, release_after_s=None).migration for name in POLICIES if name != "spark"}
    assert found == {"warm-cut", "worker", "boundary", "restart-query"}


def test_a_policy_that_advises_does_not_act() -> None:
    assert Steering("liu", release_after_s=None).acts and not Steering("liu", mode="advise", release_after_s=None).acts


def test_moves_and_rescales_are_those_that_outcomes_count(tmp_path: Path) -> None:
    """The sentences of an outcome are for people: their words do not matter."""
    outcomes = (Outcome(("some sentence",), moves=2, rescales=1), None, Outcome(("moved all",)), Outcome(moves=3))
    recorder = Recorder(tmp_path, "liu", "act")
    for outcome, snapshot in zip(outcomes, word_count_cycles(), strict=False):
        recorder.record(replace(decide(named("liu"), (), snapshot), outcome=outcome))
    recorder.close()
    keeper: Any = SimpleNamespace(starts=1, said=[])
    found = read_steered(Steering("liu", release_after_s=None), tmp_path, 0, 60.0, None, keeper)
    assert (found.moves, found.rescales) == (5, 1)
