"""The numbers that users get without any configuration, as they were before there was one place for them."""

from dataclasses import MISSING, fields

import pytest

from barograph.control.guards import Guards
from barograph.control.node_pool import Upkeep
from barograph.control.quiet_moments import Quiet
from barograph.engines.epoch_length import Recovery
from barograph.engines.sim.scenario.definition import Scenario
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.conf import tuned_settings
from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.experiments.run_settings import RunSettings
from barograph.experiments.steering.steering import Steering
from barograph.experiments.steering.worker_sizes import SEATS
from barograph.model import Topology
from barograph.priority.declared_triggers import DeclaredTriggers
from barograph.priority.machine import TopologyPriority
from barograph.priority.triggers import RateTrigger, RawEventTrigger

EXPECTED: dict[type, dict[str, object]] = {
    Guards: {
        "cooldown_s": 20.0, "cuts_per_hour": 240, "moves_per_hour": 4000, "rescales_per_hour": 60, "settle_cycles": 3,
        "return_s": 60.0, "probation_s": 20.0, "penance_s": 120.0, "after_loss_s": 30.0, "frozen": False,
    },
    Quiet: {"calm_part": 0.5, "look_cycles": 30, "most_wait_s": 120.0, "known_cycles": 3},
    Recovery: {"recovery_s": 30.0, "down_s": 2.0, "least_s": 5.0, "most_s": 300.0, "near": 0.2},
    Upkeep: {"spare": 1, "fill_pct": 85.0, "fetch_s": 15.0},
    RestartLimits: {
        "same_failures": 3, "in_a_row": 10, "first_wait_s": 0.25, "longest_wait_s": 15.0, "patience_s": 120.0,
        "keep_trying_s": 600.0, "within_s": 3600.0,
    },
    RateTrigger: {"seconds": 3.0, "off_part": 0.8, "off_s": 10.0},
    RawEventTrigger: {"share": 0.8, "off_share": 0.5},
    DeclaredTriggers: {"level": 1},
    TopologyPriority: {"calm": 2, "level": 2, "goal": 2, "old_calm": 2, "high": 1},
    Topology: {"level": 2},
    Scenario: {"cycle_s": 10.0, "epoch_s": 60.0, "timeout_s": 30.0, "step_s": 0.25},
    QueryOptions: {
        "level": 2, "desired_nodes": None, "minimum_nodes": None, "workers": None, "isolate_nodes": 0,
    },
    ClusterSettings: {
        "nodes": 3, "node_cpu": None, "seats": None, "executors": 1, "memory_mb": 1024, "port": None,
    },
    RunSettings: {"seconds": 60.0, "epoch_s": 60.0, "drain_s": 120.0, "timeout_s": 30.0, "in_flight_s": 0.2},
    Steering: {"cycle_s": 2.0, "mode": "act", "enforce": "auto", "spare_nodes": 1, "recovery_s": 30.0},
}  # fmt: skip


@pytest.mark.parametrize("owner", EXPECTED, ids=lambda c: c.__name__)
def test_values_have_the_defaults_they_had(owner: type) -> None:
    found = {f.name: f.default for f in fields(owner) if f.default is not MISSING}
    assert {name: found[name] for name in EXPECTED[owner]} == EXPECTED[owner]


def test_numbers_outside_such_values_are_as_they_were() -> None:
    assert SEATS == 8
    assert tuned_settings()["spark.barograph.inFlightMs"] == "200"
