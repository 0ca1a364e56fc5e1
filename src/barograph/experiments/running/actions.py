"""Actions that a user orders for a second of a run: whether they can be carried out, and as a plan.

Changes for one second are one plan. How actions are written is in ``barograph.config.written.actions``.
"""

from collections.abc import Iterable, Mapping

from barograph.config.written.actions import Action
from barograph.engines.check import rescaled
from barograph.model import MigrationMode, Placement, Plan, Slot, Topology
from barograph.model.checks import require


def check_actions(
    actions: Iterable[Action], topology: Topology, nodes: Mapping[str, int], seats: int, seconds: float
) -> None:
    """Refuse what cannot work: names that do not exist, more instances than seats. nodes: name -> slots."""
    present = topology
    for action in sorted(actions, key=lambda a: a.at_s):
        where = f"--at {action.at_s:g}:{action.text}"
        require(action.at_s <= seconds, f"{where}: the run ends after {seconds:g} s")
        if action.rescale is not None:
            operator = present.operator(action.rescale.operator)
            wanted = action.rescale.parallelism
            require(not operator.fixed_because or operator.parallelism == wanted, f"{where}: {operator.fixed_because}")
            present = rescaled(present, Plan(rescales=(action.rescale,)))
            count = sum(o.parallelism for o in present.operators)
            require(count <= seats, f"{where}: {count} instances need a seat each and there are {seats} seats")
        if action.move is not None:
            instance, slot = action.move
            count = present.operator(instance.operator).parallelism
            require(instance.index < count, f"{where}: {instance.operator} has {count} instances, numbered from 0")
            _require_slot(where, slot, nodes)
        if action.slot is not None:
            _require_slot(where, action.slot, nodes)


def _require_slot(where: str, slot: Slot, nodes: Mapping[str, int]) -> None:
    require(slot.node in nodes, f"{where}: there is no node {slot.node!r}; there are {', '.join(nodes)}")
    require(slot.index < nodes[slot.node], f"{where}: node {slot.node} has {nodes[slot.node]} workers")


def plan_of(actions: Iterable[Action], topology: str, mode: MigrationMode = MigrationMode.CUT) -> Plan:
    """All changes of one second as one plan, so that they share one cut."""
    listed = tuple(actions)
    return Plan(
        placement=Placement({a.move[0]: a.move[1] for a in listed if a.move is not None}),
        rescales=tuple(a.rescale for a in listed if a.rescale is not None),
        cuts=(topology,) if any(a.is_cut for a in listed) else (),
        mode=mode,
    )
