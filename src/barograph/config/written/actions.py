"""Actions that a user orders for a second of a run, as they are written: ``SECONDS:ACTION``. Pure."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from barograph.config.written.form import Form
from barograph.model import BadInput, Instance, Rescale, Slot
from barograph.model.checks import require

FORMS = (
    "move count/1=node-2", "scale split=4", "cut", "kill executor@node-2", "kill node@node-2", "start node@node-2",
    "kill driver", "kill broker", "start broker",
)  # fmt: skip


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
    at_s = _seconds(seconds)
    if not colon or at_s is None:
        raise BadInput(f"{text!r} is not SECONDS:ACTION, for example 20:move count/1=node-2")
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
            require(names_node, f"{target!r} is not the name of a node")
            return Action(at_s, order, fault=fault, slot=Slot.parse(target))
    if len(words) == 2 and words[1].count("=") == 1:
        what, target = words[1].split("=")
        if words[0] == "move":
            return Action(at_s, order, move=(Instance.parse(what, topology), Slot.parse(target)))
        if words[0] == "scale":
            require(target.isdecimal() and int(target) > 0, f"{target!r} is not a number of instances")
            return Action(at_s, order, rescale=Rescale(topology, what, int(target)))
    raise BadInput(f"the action must be {', '.join(FORMS[:-1])}, or {FORMS[-1]}")


def _seconds(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found < float("inf") else None


def _near(text: str) -> Iterable[str]:
    """With its second if that is right, else a usual one; with its action, or else one like it."""
    seconds, colon, order = text.partition(":")
    if not colon and _seconds(seconds) is None:
        seconds, order = "", seconds
    at = seconds.strip() if _seconds(seconds) is not None else "20"
    like = difflib.get_close_matches(order.strip(), FORMS, len(FORMS), 0.5)
    return [f"{at}:{candidate}" for candidate in (order.strip(), *like, "cut")]


ACTION = Form("SECONDS:ACTION", lambda text: parse_action(text, "topology"), _near)
