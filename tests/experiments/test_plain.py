"""What is told of a run on Spark alone."""

import pytest

from barograph.experiments.plain import alone
from barograph.model import Node

NODES = {f"127.0.0.{k}": Node(f"node-{k}", 60.0) for k in (2, 3, 4)}


def test_unlimited_instances_are_allotted_a_core_within_their_node() -> None:
    both = [{"127.0.0.2": 4, "127.0.0.3": 3}, {"127.0.0.2": 1, "127.0.0.3": 3, "127.0.0.4": 3}, {}]
    found = alone(both, 12.5, NODES, 100.0).to_json()
    assert found["cpu_core_s"] == {"allotted": pytest.approx(100 * (1.2 + 1.8) / 2), "used": 12.5}
    assert found["nodes_used"] == {"mean": 2.5, "max": 3}
    assert (found["policy"], found["decisions"], found["rescales"], found["controller"]) == ("spark", [], 0, None)


def test_what_nobody_can_know_is_unknown_and_not_0() -> None:
    assert alone([{"127.0.0.2": 7}], 1.0, NODES, 10.0).to_json()["moves"] is None
    nothing = alone([], 0.0, NODES, 10.0).to_json()
    assert nothing["cpu_core_s"] == {"allotted": None, "used": 0.0}
    assert nothing["nodes_used"] == {"mean": None, "max": None}
