"""The simulator: the same engine port as Spark, with a world that is computed."""

from barograph.engines.sim.calibration import Calibration, read_calibration
from barograph.engines.sim.catalogue import find, shipped
from barograph.engines.sim.closed_loop import Decider, Nobody, run
from barograph.engines.sim.engine import Simulator
from barograph.engines.sim.priority import Overhead, PriorityResult
from barograph.engines.sim.read import parse_scenario, read_scenario
from barograph.engines.sim.result import (
    CompleteTime,
    CycleResult,
    OperatorSeries,
    Result,
    TopologyResult,
    TrafficResult,
)
from barograph.engines.sim.scenario import Scenario

__all__ = [
    "Calibration",
    "CompleteTime",
    "CycleResult",
    "Decider",
    "Nobody",
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
