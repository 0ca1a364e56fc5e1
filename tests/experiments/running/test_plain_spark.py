"""The figures of a run on Spark alone."""

import pytest

from barograph.experiments.running.plain_spark import alone
from barograph.model import Node

NODES = {f"127.0.0.{k}": Node(f"node-{k}", 60.0) for k in (2, 3, 4)}


A, B, C = ((f"127.0.0.{k}", str(k)) for k in (2, 3, 4))


def test_unlimited_instances_have_a_core_within_their_node() -> None:
    both = [{A: 4, B: 3}, {A: 1, B: 3, C: 3}, {}]
    found = alone(both, 12.5, NODES, 100.0).to_json()
    given = pytest.approx(100 * (1.2 + 1.8) / 2)
    assert found["cpu_core_s"] == {"reserved": given, "limit": given, "used": 12.5}
    assert found["nodes_used"] == found["workers_used"] == {"mean": 2.5, "max": 3}
    assert (found["policy"], found["decisions"], found["rescales"], found["controller"]) == ("spark", [], 0, None)


def test_two_workers_of_a_node() -> None:
    found = alone([{A: 1, ("127.0.0.2", "9"): 1}], 1.0, NODES, 10.0).to_json()
    assert found["nodes_used"] == {"mean": 1.0, "max": 1}
    assert found["workers_used"] == {"mean": 2.0, "max": 2}
    assert found["cpu_core_s"] == {"reserved": 6.0, "limit": 6.0, "used": 1.0}


def test_what_cannot_be_known_is_unknown_and_not_0() -> None:
    assert alone([{A: 7}], 1.0, NODES, 10.0).to_json()["moves"] is None
    nothing = alone([], 0.0, NODES, 10.0).to_json()
    assert nothing["cpu_core_s"] == {"reserved": None, "limit": None, "used": 0.0}
    assert nothing["nodes_used"] == {"mean": None, "max": None}
    assert nothing["traffic"] is None
