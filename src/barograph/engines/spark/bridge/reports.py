"""What seldom changes of what the plug-in reports: executors, planned epochs with their seats, lives of instances.

Decides nothing; it only knows how they are read from a message. ``View.scala`` writes it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from sys import intern

from barograph.engines.spark.bridge.message import Message
from barograph.model import Node


@dataclass(frozen=True, slots=True)
class Executor:
    """A live executor. seats: how many tasks Spark runs there at once. cores: as Spark counts them.

    As it reports itself: group, group_cores: its control group, and the CPU that this may use (0: as much as there is);
    allowed_cores: processors it may run on (0: not reported yet). enforces: the way in which it holds instances to
    their limits; enforces_because: why not in the way that was asked for.
    """

    id: str
    host: str
    seats: int
    cores: int
    group: str = ""
    group_cores: float = 0.0
    allowed_cores: float = 0.0
    enforces: str = ""
    enforces_because: str = ""

    def as_node(self, name: str) -> Node:
        """A node with one executor like this one."""
        return Node(name, 100.0 * self.cores, 1, self.seats)


@dataclass(frozen=True, slots=True)
class LastReport:
    """Of an executor: how long ago it came, and the live executors that it does not reach."""

    age_s: float
    unreachable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrownTopic:
    """A topic that has more partitions by now than the present epoch of a topology reads."""

    topology: str
    topic: str
    read: int
    partitions: int


@dataclass(frozen=True, slots=True)
class PlannedEpoch:
    """An epoch that the planner began. orders: the number of the orders it was planned by."""

    topology: str
    run: str
    epoch: int
    orders: int
    planned_ms: int


@dataclass(frozen=True, slots=True)
class Seated:
    """Where the planner sent an instance of an epoch; ``because`` says why that is not ``wanted``, if it is not."""

    operator: str
    index: int
    executor: str
    wanted: str
    because: str


@dataclass(slots=True)
class LifeReport:
    """One instance in one epoch, as its own thread reported it. ended_ms is 0 while it runs; rows_read may rise."""

    topology: str
    run: str
    epoch: int
    operator: str
    index: int
    executor: str
    pid: int
    tid: int
    started_ms: int
    ended_ms: int
    rows_read: int


def read_executors(message: Message) -> tuple[Executor, ...]:
    return tuple(
        map(
            Executor,
            message.texts("executor_id"),
            message.texts("executor_host"),
            message.whole("executor_seats"),
            message.whole("executor_cores"),
            message.texts("executor_group"),
            (milli / 1000 for milli in message.whole("executor_group_cores")),
            (milli / 1000 for milli in message.whole("executor_allowed_cores")),
            message.texts("executor_enforces"),
            message.texts("executor_enforces_because"),
        )
    )


def read_epochs(message: Message) -> list[tuple[PlannedEpoch, list[Seated]]]:
    """Epochs, oldest first, each with its seats."""
    # Kept for many epochs, and the same few strings occur in all of them.
    epochs = map(
        PlannedEpoch,
        map(intern, message.texts("epoch_topology")),
        map(intern, message.texts("epoch_run")),
        message.whole("epoch_number"),
        message.whole("epoch_orders"),
        message.whole("epoch_planned_ms"),
    )
    found: list[tuple[PlannedEpoch, list[Seated]]] = [(epoch, []) for epoch in epochs]
    seats = map(
        Seated,
        map(intern, message.texts("seat_operator")),
        message.whole("seat_instance"),
        map(intern, message.texts("seat_executor")),
        map(intern, message.texts("seat_wanted")),
        map(intern, message.texts("seat_because")),
    )
    for at, seat in zip(message.whole("seat_epoch"), seats, strict=True):
        found[at][1].append(seat)
    return found


def read_lives(message: Message) -> Iterator[LifeReport]:
    """Lives that began, ended or were superseded, as they are now."""
    return map(
        LifeReport,
        map(intern, message.texts("life_topology")),
        map(intern, message.texts("life_run")),
        message.whole("life_epoch"),
        map(intern, message.texts("life_operator")),
        message.whole("life_instance"),
        map(intern, message.texts("life_executor")),
        message.whole("life_pid"),
        message.whole("life_tid"),
        message.whole("life_started_ms"),
        message.whole("life_ended_ms"),
        message.whole("life_read"),
    )
