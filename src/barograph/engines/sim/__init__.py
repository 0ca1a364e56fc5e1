"""The simulator: an engine with the same port as Spark, on a computed cluster."""

from barograph.engines.sim.calibration import Calibration, read_calibration
from barograph.engines.sim.closed_loop import Decider, KeepPlacement, run
from barograph.engines.sim.engine import Simulator
from barograph.engines.sim.priority_result import Overhead, PriorityResult
from barograph.engines.sim.result import (
    CompleteTime,
    CycleResult,
    OperatorSeries,
    Result,
    TopologyResult,
    TrafficResult,
)
from barograph.engines.sim.scenario.catalogue import find, shipped
from barograph.engines.sim.scenario.definition import Scenario
from barograph.engines.sim.scenario.read import parse_scenario, read_scenario

__all__ = [
    "Calibration",
    "CompleteTime",
    "CycleResult",
    "Decider",
    "KeepPlacement",
    "OperatorSeries",
    "Overhead",
    "PriorityResult",
    "Result",
    "Scenario",
    "Simulator",
    "TopologyResult",
    "TrafficResult",
    "find",
    "parse_scenario",
    "read_calibration",
    "read_scenario",
    "run",
    "shipped",
]
