"""Workers of a node: what the user says, else what the policy wants."""

import pytest

from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.experiments.steering.worker_sizes import SEATS, Workers, shared_workers, workers_for
from barograph.policy.registry import POLICIES, named
from barograph.workloads import wordcount

TOPOLOGY = wordcount.topology(wordcount.DEFAULT_PARALLELISM)
MEMORY_MB = ClusterSettings().memory_mb


@pytest.mark.parametrize("name", [None, *(n for n, p in POLICIES.items() if (p.workers_per_node or 1) == 1)])
def test_most_policies_want_one(name: str | None) -> None:
    policy = None if name is None else named(name)
    assert workers_for(policy, TOPOLOGY, None, None) == Workers(1, SEATS, MEMORY_MB)
    assert shared_workers(policy, 1) == ""


def test_liu_gets_two_on_a_node_of_the_same_size() -> None:
    found = workers_for(named("liu"), TOPOLOGY, None, None)
    assert found.executors == 2
    assert found.executors * found.seats >= SEATS
    assert found.executors * found.memory_mb == MEMORY_MB


def test_each_worker_holds_all_instances_of_its_kind() -> None:
    many = wordcount.topology({"source": 2, "split": 9, "count": 3})
    assert workers_for(named("liu"), many, None, None).seats == 11


def test_the_user_has_the_last_word() -> None:
    assert workers_for(named("liu"), TOPOLOGY, 1, None) == Workers(1, SEATS, MEMORY_MB)
    assert workers_for(named("liu"), TOPOLOGY, None, 6).seats == 6
    assert workers_for(named("even"), TOPOLOGY, 3, 4) == Workers(3, 4, MEMORY_MB)


def test_too_few_workers_are_told_in_one_line() -> None:
    said = shared_workers(named("liu"), 1)
    assert "liu needs 2 workers on a node and there is 1" in said and "share a worker" in said
    assert shared_workers(named("liu"), 2) == ""
