"""Actions that a user orders for a second of a run: ``--at SECONDS:ACTION``. Changes for one second are one plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from barograph.engines.check import rescaled
from barograph.model import BadInput, Instance, MigrationMode, Placement, Plan, Rescale, Slot, Topology
from barograph.model.checks import require

FORMS = (
    "move count/1=node-2, scale split=4, cut, kill executor@node-2, kill node@node-2, start node@node-2, kill driver, "
    "kill broker, or start broker"
)


class Fault(StrEnum):
    """Something that happens to a process of the cluster, not to the topology."""

    KILL_EXECUTOR = "kill executor"
    KILL_NODE = "kill node"
    START_NODE = "start node"
    KILL_DRIVER = "kill driver"
    KILL_BROKER = "kill broker"
    START_BROKER = "start broker"


@dataclass(frozen=True, slots=True)
class Action:
    """One action: a move, a rescale, a fault in a slot, or else a cut. text: as the user wrote it."""

    at_s: float
    text: str
    move: tuple[Instance, Slot] | None = None
    rescale: Rescale | None = None
    fault: Fault | None = None
    slot: Slot | None = None

    @property
    def is_cut(self) -> bool:
        return self.move is None and self.rescale is None and self.fault is None


def parse_action(text: str, topology: str) -> Action:
    seconds, colon, order = text.partition(":")
    try:
        at_s = float(seconds)
    except ValueError:
        at_s = -1.0
    if not colon or not at_s >= 0 or at_s == float("inf"):
        raise BadInput(f"--at {text!r}: write SECONDS:ACTION, for example 20:move count/1=node-2")
    words = order.split()
    if words == ["cut"]:
        return Action(at_s, order)
    if " ".join(words) in (Fault.KILL_DRIVER, Fault.KILL_BROKER, Fault.START_BROKER):
        return Action(at_s, order, fault=Fault(" ".join(words)))
    if len(words) == 2 and words[1].count("@") == 1:
        what, target = words[1].split("@")
        if (name := f"{words[0]} {what}") in set(Fault) and target:
            fault = Fault(name)
            names_node = fault is Fault.KILL_EXECUTOR or "/" not in target
            require(names_node, f"--at {text!r}: {target!r} is not the name of a node")
            return Action(at_s, order, fault=fault, slot=Slot.parse(target))
    if len(words) == 2 and words[1].count("=") == 1:
        what, target = words[1].split("=")
        if words[0] == "move":
            return Action(at_s, order, move=(Instance.parse(what, topology), Slot.parse(target)))
        if words[0] == "scale":
            require(target.isdecimal() and int(target) > 0, f"--at {text!r}: {target!r} is not a number of instances")
            return Action(at_s, order, rescale=Rescale(topology, what, int(target)))
    raise BadInput(f"--at {text!r}: the action must be {FORMS}")


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
