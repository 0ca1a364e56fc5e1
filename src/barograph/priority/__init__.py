"""Priorities that change while topologies run: triggers, the drain protocol, and what survives a restart."""

from barograph.priority.desk import Desk, Taps
from barograph.priority.machine import Limits, Standing, State, with_levels
from barograph.priority.triggers import RateTrigger, RawEventTrigger

__all__ = ["Desk", "Limits", "RateTrigger", "RawEventTrigger", "Standing", "State", "Taps", "with_levels"]
