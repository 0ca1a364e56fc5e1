"""Runs a policy on a simulated cluster. Engines know no policies; this module connects the two.

A policy that takes its shares from another policy's run (such as ``fixed-mean``) sees that run first.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from barograph.control.decide import MEMORY_CYCLES, decide, decide_between
from barograph.engines.sim import Calibration, Decider, KeepPlacement, OperatorSeries, Result, Scenario, Simulator, run
from barograph.model import Cycle, Instance, Outcome, Plan, Snapshot
from barograph.model.checks import require
from barograph.policy.definition import Policy, learned, options_of, with_options
from barograph.policy.registry import named

NO_POLICY = "none"


class PolicyDecider:
    """A policy and its history. keep_all: all cycles are kept, so that another policy can learn from the run."""

    def __init__(self, policy: Policy, keep_all: bool = False) -> None:
        self.policy = policy
        self._keep_all = keep_all
        self.cycles: list[Cycle] = []
        self.operators: dict[str, OperatorSeries] = {}

    def plan(self, now: Snapshot) -> Plan:
        cycle = decide(self.policy, self.cycles[-MEMORY_CYCLES:], now)
        self.cycles.append(cycle)
        record(self.operators, cycle)
        if not self._keep_all and len(self.cycles) > 2 * MEMORY_CYCLES:
            del self.cycles[:-MEMORY_CYCLES]
        return cycle.plan

    @property
    def heeds_triggers(self) -> bool:
        return self.policy.heeds_triggers

    def plan_between(self, now: Snapshot) -> Plan:
        """Decide again in place of the last cycle, as the loop does on Spark."""
        self.cycles[-1] = decide_between(self.policy, self.cycles[-MEMORY_CYCLES:], now)
        return self.cycles[-1].plan

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
    """Run the scenario under the policy. options: of the policy; they override the scenario's own."""
    decider = decider_of(scenario, policy, seed, options or {}, calibration, grain)
    found = run(Simulator(scenario, seed, calibration, grain), decider, keep)
    return replace(found, operators=decider.operators) if isinstance(decider, PolicyDecider) else found


def record(series: dict[str, OperatorSeries], cycle: Cycle) -> None:
    """Add a cycle to each operator's series: what was seen in it, and what was decided for the next."""
    now, limits = cycle.snapshot, cycle.plan.limits_pct
    for o in cycle.demand.operators:
        mine = series.setdefault(f"{o.topology}/{o.operator}", OperatorSeries())
        seen, expected = now.metrics.of_operator(o.topology, o.operator), cycle.forecast.of(o.topology, o.operator)
        written = [limits.get(Instance(o.topology, o.operator, k)) for k in range(o.parallelism)]
        mine.at_s.append(now.at_s)
        mine.instances.append(o.parallelism)
        mine.predicted_rows_per_s.append((expected.arrived if expected else 0.0) / now.cycle_s)
        mine.arrived_rows_per_s.append(seen.arrived / now.cycle_s)
        mine.reserved_pct.append(sum(o.shares_pct))
        known = [pct for pct in written if pct is not None]
        mine.limit_pct.append(sum(known) if len(known) == len(written) else None)
        mine.used_pct.append(100.0 * seen.cpu_s / now.cycle_s)


def decider_of(
    scenario: Scenario,
    name: str,
    seed: int,
    options: Mapping[str, object],
    calibration: Calibration | None,
    grain: str | None,
) -> Decider:
    """The decider of this name for this scenario; a policy that learns from another run gets that run first."""
    if name == NO_POLICY:
        require(not options, f"policy {NO_POLICY} has no options")
        return KeepPlacement()
    policy = _with_wishes(scenario, name, options)
    if policy.learns is not None:
        other = _with_wishes(scenario, policy.learns_from, {})
        require(other.learns is None, f"policy {name} cannot learn from {other.name}, which learns from another run")
        teacher = PolicyDecider(other, keep_all=True)
        run(Simulator(scenario, seed, calibration, grain), teacher)
        policy = learned(policy, teacher.cycles)
    return PolicyDecider(policy)


def _with_wishes(scenario: Scenario, name: str, options: Mapping[str, object]) -> Policy:
    """The policy with the options that the scenario asks for; given options override them."""
    policy = named(name)
    known = options_of(policy)
    wishes = {key: value for key, value in scenario.options.items() if key in known}
    return with_options(policy, {**wishes, **options})
