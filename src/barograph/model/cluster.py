"""Where things run: nodes have slots, a slot holds one worker, a worker has seats for instances."""

from dataclasses import dataclass

from barograph.model.checks import BadInput, is_index, require_name, require_number, require_positive, require_whole


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """Room for one worker on a node. It keeps its name when the worker in it dies and another takes its place."""

    node: str
    index: int = 0

    def __post_init__(self) -> None:
        require_name("slot.node", self.node)
        require_whole("slot.index", self.index)

    def __str__(self) -> str:
        return f"{self.node}/{self.index}"

    @staticmethod
    def parse(text: str) -> "Slot":
        """Read ``node/slot``, or ``node`` for its first slot."""
        node, _, index = text.partition("/")
        if not node or (index and not is_index(index)):
            raise BadInput(f"{text!r} names no slot: write a node, or node/slot, for example node-2 or node-2/0")
        return Slot(node, int(index or 0))


@dataclass(frozen=True, slots=True)
class Node:
    """A machine. cpu_pct: its CPU, in per cent of a core. seats: of each worker there, None for no limit."""

    name: str
    cpu_pct: float
    slots: int = 1
    seats: int | None = None
    memory_mb: float | None = None
    clock_mhz: float = 1000.0
    rack: str = ""

    def __post_init__(self) -> None:
        require_name("node.name", self.name)
        here = f"node {self.name}"
        require_positive(f"{here}: cpu_pct", self.cpu_pct)
        require_whole(f"{here}: slots", self.slots, 1)
        if self.seats is not None:
            require_whole(f"{here}: seats", self.seats, 1)
        if self.memory_mb is not None:
            require_number(f"{here}: memory_mb", self.memory_mb)
        require_positive(f"{here}: clock_mhz", self.clock_mhz)


@dataclass(frozen=True, slots=True)
class Worker:
    """A live process in a slot. executor: the engine's name for this process; the next one in the slot has another."""

    slot: Slot
    executor: str
    seats: int

    def __post_init__(self) -> None:
        require_name("worker.executor", self.executor)
        require_whole(f"worker {self.slot}: seats", self.seats, 1)
