"""Slots of executors, and the size of nodes with one, several, different and changing executors."""

import pytest

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


def reported(name: str, group: str, group_cores: float = 0.0, allowed_cores: float = 4.0) -> Executor:
    return Executor(name, "h", 8, 8, group, group_cores, allowed_cores)


def cpu_pct(*executors: Executor) -> float:
    slots = WorkerSlots({})
    slots.assign(executors)
    return slots.nodes[0].cpu_pct


def test_a_node_has_the_cpu_that_its_executors_report_and_not_its_seats() -> None:
    assert cpu_pct(reported("0", "/a")) == 400.0, "no quota: the processors it may run on"
    assert cpu_pct(reported("0", "/a", 1.5)) == 150.0
    assert cpu_pct(reported("0", "/a", 6.0)) == 400.0, "a quota above the processors is worth nothing"
    assert cpu_pct(reported("0", "/a", 1.5), reported("1", "/a", 1.5)) == 150.0, "they share one group"
    assert cpu_pct(reported("0", "/a", 1.5), reported("1", "/b", 1.0)) == 250.0
    assert cpu_pct(reported("0", "/a", 3.0), reported("1", "/b", 3.0)) == 400.0
    assert cpu_pct(reported("0", "/a"), reported("1", "/b")) == 400.0


def test_of_a_declared_node_the_cpu_and_the_name_hold() -> None:
    slots = WorkerSlots({"127.0.0.1": Node("node-1", 50.0, slots=1, seats=8, memory_mb=900.0)})
    slots.assign([executor("0", host="127.0.0.1", cores=8, seats=16)])
    assert slots.nodes == (Node("node-1", 50.0, slots=1, seats=16, memory_mb=900.0),)
    assert slots.where("0") == "executor 0 on node-1"


@pytest.mark.parametrize("nodes", [{}, {"h": Node("node-1", 50.0)}], ids=["nothing declared", "declared"])
def test_a_new_executor_takes_the_slot_of_the_lost_one(nodes: dict[str, Node]) -> None:
    slots, name = WorkerSlots(nodes), nodes["h"].name if nodes else "h"
    slots.assign([executor("0"), executor("1"), executor("2")])
    slots.assign([executor("0"), executor("2")])
    assert slots.of == {"0": Slot(name, 0), "2": Slot(name, 2)}, "the others keep theirs"
    slots.assign([executor("0"), executor("2"), executor("3")])
    assert slots.of["3"] == Slot(name, 1)
    slots.assign([executor("2")])
    slots.assign([executor("2"), executor("4"), executor("5"), executor("6")])
    assert {e: s.index for e, s in slots.of.items()} == {"2": 2, "4": 0, "5": 1, "6": 3}


def test_an_executor_on_another_host_takes_no_slot_of_the_lost_one() -> None:
    slots = WorkerSlots({})
    slots.assign([executor("0", host="a"), executor("1", host="b")])
    slots.assign([executor("0", host="a"), executor("2", host="a")])
    assert slots.of == {"0": Slot("a", 0), "2": Slot("a", 1)}
    slots.assign([executor("0", host="a"), executor("2", host="a"), executor("3", host="b")])
    assert slots.of["3"] == Slot("b", 0)


def test_a_pod_takes_the_number_of_the_lost_one_although_its_address_is_another() -> None:
    slots = WorkerSlots({}, pods=True)
    slots.assign([executor("1", host="10.1.0.4"), executor("2", host="10.1.0.5", cores=2)])
    assert slots.of == {"1": Slot("pod-0"), "2": Slot("pod-1")}
    slots.assign([executor("2", host="10.1.0.5", cores=2)])
    slots.assign([executor("2", host="10.1.0.5", cores=2), executor("3", host="10.1.0.9", cores=8, seats=8)])
    assert slots.of == {"2": Slot("pod-1"), "3": Slot("pod-0")}
    assert slots.nodes == (Node("pod-0", 800.0, seats=8), Node("pod-1", 200.0, seats=4)), "no pod is left over"
    assert slots.where("1") == "executor 1 on pod-0"
