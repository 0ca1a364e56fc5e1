"""The frozen values a cycle is made of. Everything here is data: no I/O, no clock, no randomness."""

from barograph.model.beside import BESIDE_CYCLES, beside_part
from barograph.model.checks import BadInput
from barograph.model.cluster import Node, Slot, Worker
from barograph.model.cycle import Cycle
from barograph.model.decision import Allotment, Demand, Forecast, OperatorDemand, OperatorForecast
from barograph.model.frame import Frame, Link, mean_of_ratios, ratio_of_sums
from barograph.model.loads.load import Load
from barograph.model.loads.schedule import Schedule, Segment
from barograph.model.metrics import (
    EdgeTraffic,
    InstanceMetrics,
    Latency,
    LatencyKind,
    Metrics,
    NodeMetrics,
    TopologyMetrics,
)
from barograph.model.placement import Move, Placement
from barograph.model.plan import MigrationMode, Outcome, Plan, Refusal, RefusalCode, Rescale, nodes_kept
from barograph.model.reason import Reason, ReasonCode
from barograph.model.regression import Lines, rises, slope_of
from barograph.model.snapshot import Snapshot
from barograph.model.topology import Edge, Grouping, Instance, Operator, Topology

__all__ = [
    "BESIDE_CYCLES",
    "Allotment",
    "BadInput",
    "Cycle",
    "Demand",
    "Edge",
    "EdgeTraffic",
    "Forecast",
    "Frame",
    "Grouping",
    "Instance",
    "InstanceMetrics",
    "Latency",
    "LatencyKind",
    "Lines",
    "Link",
    "Load",
    "Metrics",
    "MigrationMode",
    "Move",
    "Node",
    "NodeMetrics",
    "Operator",
    "OperatorDemand",
    "OperatorForecast",
    "Outcome",
    "Placement",
    "Plan",
    "Reason",
    "ReasonCode",
    "Refusal",
    "RefusalCode",
    "Rescale",
    "Schedule",
    "Segment",
    "Slot",
    "Snapshot",
    "Topology",
    "TopologyMetrics",
    "Worker",
    "beside_part",
    "mean_of_ratios",
    "nodes_kept",
    "ratio_of_sums",
    "rises",
    "slope_of",
]
