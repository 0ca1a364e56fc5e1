"""The same places for A and B in all cases, so that these differ only in B's load and in how limits are held."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle

from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.engine import SparkEngine
from barograph.model import Instance, MigrationMode, Outcome, Placement, Plan, Slot


def one_plan(counts: Mapping[str, Mapping[str, int]], slots: Sequence[Slot]) -> Plan:
    """Instances are dealt out to the slots in turn, operator after operator, so that both are on each. counts: by
    topology, the instances of its operators."""
    instances = [Instance(name, op, k) for name, of in counts.items() for op, n in of.items() for k in range(n)]
    return Plan(Placement(dict(zip(instances, cycle(slots), strict=False))), mode=MigrationMode.CUT)


def by_index(plan: Plan, letters: Mapping[str, str]) -> dict[str, str]:
    """As JSON. letters: of topologies, whose names differ from case to case."""
    return {f"{letters[i.topology]}/{i.operator}/{i.index}": str(slot) for i, slot in plan.placement.slots.items()}


def nodes_of(engine: SparkEngine, topology: str) -> dict[Instance, str]:
    """Where its instances are, as of the last look."""
    epoch = engine.present(topology)
    return {} if epoch is None else {i: engine.node_of(epoch.executor_of(i)) for i in epoch.seated}


@contextmanager
def limits_only(supervisor: Supervisor) -> Iterator[None]:
    """Meanwhile plans change shares and limits only. A controller's budget would not do: its first plan is free."""
    apply = supervisor.apply

    def reduced(plan: Plan) -> Outcome:
        return apply(replace(plan, placement=Placement(), rescales=(), cuts=()))

    supervisor.apply = reduced  # type: ignore[method-assign]
    try:
        yield
    finally:
        del supervisor.apply
