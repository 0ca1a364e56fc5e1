"""Impossible settings are refused before anything starts."""

import json
import socket
from dataclasses import asdict
from typing import Any

import pytest

from barograph.engines.spark.cluster import settings as cluster_settings
from barograph.engines.spark.cluster.settings import ClusterSettings, require_free_port
from barograph.model import BadInput


@pytest.mark.parametrize(
    ("wrong", "culprit"),
    [
        ({"nodes": 0}, "nodes"),
        ({"nodes": 251}, "nodes"),
        ({"seats": 0}, "seats"),
        ({"executors": 0}, "executors"),
        ({"node_cpu": -0.5}, "node_cpu"),
        ({"node_cpu": 0.0}, "node_cpu"),
        ({"node_cpu": float("nan")}, "node_cpu"),
        ({"node_cpu": (0.6, 0.0, 0.3)}, "node_cpu"),
        ({"node_cpu": (0.6, 0.3)}, "node_cpu has 2 values for 3 nodes: one for all, or one each"),
        ({"memory_mb": 100}, "memory_mb"),
        ({"port": 0}, "port"),
        ({"port": 70000}, "port"),
    ],
)
def test_refused(wrong: dict[str, object], culprit: str) -> None:
    with pytest.raises(BadInput, match=culprit):
        ClusterSettings(**wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_taken_port_is_refused_and_a_free_one_is_not() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=f"port {port} cannot be used"):
            require_free_port(port)
    require_free_port(port)


def test_nodes_as_a_policy_sees_them() -> None:
    first, second = ClusterSettings(2, 0.6, seats=8, executors=2, memory_mb=600).model_nodes()
    assert (first.name, first.cpu_pct, first.slots, first.seats, first.memory_mb) == ("node-1", 60.0, 2, 8, 1200.0)
    assert second.name == "node-2"


def test_nodes_may_differ_also_when_they_are_read_back() -> None:
    settings = ClusterSettings(3, (0.6, 0.3, 0.9))
    assert [n.cpu_pct for n in settings.model_nodes()] == pytest.approx([60.0, 30.0, 90.0])
    assert settings.node_cpus() == {"node-1": 0.6, "node-2": 0.3, "node-3": 0.9}
    again = ClusterSettings(**json.loads(json.dumps(asdict(settings))))
    assert again == settings and hash(again) == hash(settings)
    assert ClusterSettings(2, 0.6).node_cpus() == {"node-1": 0.6, "node-2": 0.6}


@pytest.mark.parametrize(
    ("cores", "given", "seats"),
    [
        (2, {}, 4),
        (16, {}, 22),
        (16, {"executors": 2}, 11),
        (16, {"nodes": 1}, 64),
        (16, {"node_cpu": 0.5}, 4),
        (16, {"node_cpu": (8.0, 4.0, 2.0)}, 19),
        (16, {"node_cpu": (8.0, 16.0, 8.0)}, 22),
        (16, {"seats": 3}, 3),
    ],
)
def test_seats_that_are_not_given_are_more_than_the_cores(
    cores: int, given: dict[str, Any], seats: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_settings, "own_cores", lambda: cores)
    assert ClusterSettings(**given).seats == seats
