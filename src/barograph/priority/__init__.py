"""Priorities that change while topologies run: triggers, the drain protocol, and what survives a restart."""

from barograph.priority.machine import PriorityLimits, PriorityState, TopologyPriority, with_levels
from barograph.priority.manager import PriorityHooks, PriorityManager
from barograph.priority.triggers import RateTrigger, RawEventTrigger

__all__ = [
    "PriorityHooks",
    "PriorityLimits",
    "PriorityManager",
    "PriorityState",
    "RateTrigger",
    "RawEventTrigger",
    "TopologyPriority",
    "with_levels",
]
