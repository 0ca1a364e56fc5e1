"""A policy with its memory, for whoever drives a loop of its own: asked for a plan, told what became of it."""

from collections import deque
from dataclasses import replace

from barograph.controller import decide
from barograph.model import Cycle, Outcome, Plan, Snapshot
from barograph.policies import Policy

MEMORY_CYCLES = 120  # more than any stage looks back


class PolicyDecider:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.history: deque[Cycle] = deque(maxlen=MEMORY_CYCLES)

    def plan(self, now: Snapshot) -> Plan:
        cycle = decide(self.policy, tuple(self.history), now)
        self.history.append(cycle)
        return cycle.plan

    def told(self, outcome: Outcome) -> None:
        self.history.append(replace(self.history.pop(), outcome=outcome))
