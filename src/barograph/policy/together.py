"""Gives operators that scale together one number of instances, under any policy.

Spark keeps the state of all stateful operators of a query in one number of parts. A policy sizes each operator by
itself; here all of them get what the one with the greatest need gets, and fewer only when each of them needs fewer.
Pure. Nothing is changed where no operators scale together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from barograph.model import Cycle, Demand, Forecast, OperatorDemand, Reason, ReasonCode, Snapshot, Topology
from barograph.policy.declared_bounds import resized
from barograph.policy.definition import Policy
from barograph.scale.protocol import total_seats


def scaled_together(policy: Policy, now: Snapshot) -> Policy:
    """The policy, with one number of instances for operators of this snapshot that scale together."""
    if any(o.scales_with for t in now.topologies for o in t.operators):
        policy = replace(policy, scaler=TogetherScaler(policy.scaler))
    return policy


@dataclass(frozen=True)
class TogetherScaler:
    """A policy's scaler, whose demand it makes equal where it must be."""

    scaler: Callable[[Sequence[Cycle], Snapshot, Forecast], Demand]

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:
        demand = self.scaler(history, now, forecast)
        found = list(demand.operators)
        seats = total_seats(now)
        for topology in now.topologies:
            for group in _groups(topology):
                mine = [i for i, o in enumerate(found) if o.topology == topology.name and o.operator in group]
                taken = sum(o.parallelism for i, o in enumerate(found) if i not in mine)
                count, leader = _common(topology, [found[i] for i in mine], None if seats is None else seats - taken)
                for i in mine:
                    found[i] = _given(found[i], count, leader)
        return replace(demand, operators=tuple(found))


def _groups(topology: Topology) -> list[tuple[str, ...]]:
    """Names of operators that scale together, each once."""
    return sorted({tuple(sorted((o.name, *o.scales_with))) for o in topology.operators if o.scales_with})


def _common(topology: Topology, demands: Sequence[OperatorDemand], seats: int | None) -> tuple[int, str]:
    """Instances of each, and the operator that needs most. seats: for all of them; None: without limit."""
    operators = [topology.operator(o.operator) for o in demands]
    present = max(o.parallelism for o in operators)
    leader = max(demands, key=lambda o: o.parallelism)
    if any(o.fixed_because for o in operators):
        return present, leader.operator
    most = min((o.max_parallelism for o in operators if o.max_parallelism is not None), default=leader.parallelism)
    least = max(o.min_parallelism for o in operators)
    count = max(least, min(most, leader.parallelism))
    if seats is not None and count > present:
        count = max(present, min(count, seats // len(operators)))
    return count, leader.operator


def _given(o: OperatorDemand, count: int, leader: str) -> OperatorDemand:
    if o.parallelism == count:
        return o
    why = f"it has as many instances as {leader}, with which its state is split"
    if o.operator == leader:
        why = "the operators with which its state is split cannot have more, or there are no seats for all of them"
    numbers = {"wanted": float(o.wanted or o.parallelism), "instances": float(count)}
    reason = Reason(f"{o.topology}/{o.operator}", ReasonCode.SCALES_TOGETHER, why, numbers)
    return replace(resized(o, count), reason=reason)
