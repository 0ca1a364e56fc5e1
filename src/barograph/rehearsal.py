"""A policy on a simulated cluster: who decides, bound to what is simulated. Engines know no policies; this does.

A policy that takes its shares from another policy's run (``fixed-mean`` and its like) sees that run first.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from barograph.controller import decide
from barograph.engines.sim import Calibration, Decider, Nobody, Result, Scenario, Simulator, run
from barograph.model import Cycle, Outcome, Plan, Snapshot
from barograph.model.checks import require
from barograph.policies import Policy, learned, named, options_of, with_options

NOBODY = "none"
MEMORY_CYCLES = 120  # more than any stage looks back


class PolicyDecider:
    """A policy with its memory. keep_all: also what it no longer looks back to, for those who learn from the run."""

    def __init__(self, policy: Policy, keep_all: bool = False) -> None:
        self.policy = policy
        self._keep_all = keep_all
        self.cycles: list[Cycle] = []

    def plan(self, now: Snapshot) -> Plan:
        cycle = decide(self.policy, self.cycles[-MEMORY_CYCLES:], now)
        self.cycles.append(cycle)
        if not self._keep_all and len(self.cycles) > 2 * MEMORY_CYCLES:
            del self.cycles[:-MEMORY_CYCLES]
        return cycle.plan

    def told(self, outcome: Outcome) -> None:
        self.cycles[-1] = replace(self.cycles[-1], outcome=outcome)


def rehearse(
    scenario: Scenario,
    policy: str,
    seed: int = 0,
    *,
    options: Mapping[str, object] | None = None,
    calibration: Calibration | None = None,
    grain: str | None = None,
    keep: Callable[[str], None] | None = None,
) -> Result:
    """Run the scenario under the policy. options: of the policy, before the scenario's own wishes."""
    decider = decider_of(scenario, policy, seed, options or {}, calibration, grain)
    return run(Simulator(scenario, seed, calibration, grain), decider, keep)


def decider_of(
    scenario: Scenario,
    name: str,
    seed: int,
    options: Mapping[str, object],
    calibration: Calibration | None,
    grain: str | None,
) -> Decider:
    """Who decides under this name, for this scenario; one who learns from another run has seen it."""
    if name == NOBODY:
        require(not options, f"policy {NOBODY} has no options")
        return Nobody()
    policy = named(name)
    known = options_of(policy)
    wishes = {key: value for key, value in scenario.options.items() if key in known}
    policy = with_options(policy, {**wishes, **options})
    if policy.learns is not None:
        teacher = PolicyDecider(named(policy.learns_from), keep_all=True)
        run(Simulator(scenario, seed, calibration, grain), teacher)
        policy = learned(policy, teacher.cycles)
    return PolicyDecider(policy)
