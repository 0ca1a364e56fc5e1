"""Slots of executors, and the size of nodes with one, several, different and changing executors."""

from barograph.engines.spark.bridge.reports import Executor
from barograph.engines.spark.worker_slots import WorkerSlots
from barograph.model import Node, Slot


def executor(name: str, host: str = "h", cores: int = 4, seats: int = 4) -> Executor:
    return Executor(name, host, seats, cores)


def test_an_unknown_host_is_as_large_as_its_executors_together() -> None:
    slots = WorkerSlots({})
    slots.assign([executor("0"), executor("1"), executor("2", host="other")])
    assert slots.nodes == (Node("h", 800.0, slots=2, seats=4), Node("other", 400.0, seats=4))
    assert slots.of == {"0": Slot("h", 0), "1": Slot("h", 1), "2": Slot("other", 0)}


def test_executors_that_come_later_and_go_change_the_size() -> None:
    slots = WorkerSlots({})
    slots.assign([executor("0")])
    slots.assign([executor("0"), executor("1", cores=2, seats=2)])
    assert slots.nodes == (Node("h", 600.0, slots=2, seats=3),)
    slots.assign([executor("1", cores=2, seats=2)])
    assert slots.nodes == (Node("h", 200.0, slots=2, seats=2),)
    assert slots.of == {"1": Slot("h", 1)}


def test_a_host_without_executors_keeps_its_last_size() -> None:
    slots = WorkerSlots({})
    slots.assign([executor("0"), executor("1")])
    slots.assign([])
    assert slots.nodes == (Node("h", 800.0, slots=2, seats=4),)


def test_cores_are_not_seats() -> None:
    """spark.task.cpus 0.5 and 2 on four cores."""
    slots = WorkerSlots({})
    slots.assign([executor("0", host="a", seats=8), executor("1", host="b", seats=2)])
    assert slots.nodes == (Node("a", 400.0, seats=8), Node("b", 400.0, seats=2))


def test_of_a_declared_node_the_cpu_and_the_name_hold() -> None:
    slots = WorkerSlots({"127.0.0.1": Node("node-1", 50.0, slots=1, seats=8, memory_mb=900.0)})
    slots.assign([executor("0", host="127.0.0.1", cores=8, seats=16)])
    assert slots.nodes == (Node("node-1", 50.0, slots=1, seats=16, memory_mb=900.0),)
    assert slots.where("0") == "executor 0 on node-1"
