"""Which way each policy moves on Spark: its paper's own, unless an option says otherwise."""

import pytest

from barograph.experiments.steering import Steering
from barograph.model import BadInput, MigrationMode
from barograph.policies import POLICIES, options_of


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "spark"])
def test_each_policy_moves_in_its_own_way(name: str) -> None:
    steering, own = Steering(name), options_of(POLICIES[name])["mode"]
    if own is MigrationMode.RESTART_APP:
        assert steering.migration == MigrationMode.RESTART_QUERY
        assert f"{name} moves by restart-app" in steering.instead and "restart-query" in steering.instead
    else:
        assert (steering.migration, steering.instead) == (own, "")
    assert options_of(steering.decider())["mode"] == steering.migration


@pytest.mark.parametrize("name", ["autoscale", "adaptive", "liu"])
def test_an_option_overrides_it_without_a_word(name: str) -> None:
    steering = Steering(name, options={"mode": "boundary"})
    assert (steering.migration, steering.instead) == ("boundary", "")
    with pytest.raises(BadInput, match="cannot end the application it steers"):
        Steering(name, options={"mode": "restart-app"})


def test_ways_that_are_met_on_spark() -> None:
    """Not all the same: else a comparison of policies would not compare what their papers built."""
    found = {Steering(name).migration for name in POLICIES if name != "spark"}
    assert found == {"warm-cut", "worker", "boundary", "restart-query"}


def test_a_policy_that_advises_does_not_act() -> None:
    assert Steering("liu").acts and not Steering("liu", mode="advise").acts
