"""The first decision of a run: the policy's own, from nothing."""

from dataclasses import replace

import pytest
from tests.cycles import nodes, seen, workers_on

from barograph.experiments.steering.first_placement import UNSTEERED, First, first_decision
from barograph.model import Allotment, Demand, Instance, InstanceMetrics, Placement, Plan, Slot, Snapshot
from barograph.place import PlaceDecision
from barograph.policy.definition import with_options, with_shares
from barograph.policy.registry import POLICIES, named
from barograph.workloads import wordcount

TOPOLOGY = wordcount.topology(wordcount.DEFAULT_PARALLELISM)
ALL_INSTANCES = set(TOPOLOGY.instances())
BEFORE = wordcount.topology({"source": 1, "split": 1, "count": 1})


def cluster(cpu_pct: float = 60.0, slots: int = 1, seats: int = 8) -> Snapshot:
    """Three nodes on which something else was measured and placed a moment ago."""
    places = Placement(dict.fromkeys(BEFORE.instances(), Slot("n3", 0)))
    work = {o.name: InstanceMetrics(100, 100, 100, cpu_s=5.0) for o in BEFORE.operators}
    machines = nodes(3, cpu_pct, slots, seats)
    return replace(seen(BEFORE, work, cluster=machines, placement=places), workers=workers_on(machines))


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "spark"])
def test_every_policy_begins_with_its_own(name: str) -> None:
    found = first_decision(named(name), cluster(), TOPOLOGY)
    assert found.by == name
    assert set(found.placement) | set(_left(found)) == ALL_INSTANCES
    assert bool(_left(found)) == bool(found.said)
    assert set(found.then.shares_pct) <= ALL_INSTANCES
    then = found.then
    assert then == Plan(shares_pct=then.shares_pct, limits_pct=then.limits_pct, rests=then.rests), (
        "what is to be ordered"
    )


def _left(first: First) -> list[Instance]:
    return [i for i in ALL_INSTANCES if i not in first.placement]


def test_what_ran_before_does_not_matter() -> None:
    empty = replace(cluster(), topologies=(), placement=Placement())
    for name in ("adaptive", "liu", "online", "even"):
        assert first_decision(named(name), cluster(), TOPOLOGY) == first_decision(named(name), empty, TOPOLOGY)


def test_placements_differ_by_policy() -> None:
    packed = first_decision(named("liu"), cluster(600.0), TOPOLOGY)
    dealt = first_decision(named("even"), cluster(600.0), TOPOLOGY)
    assert len({s.node for s in packed.placement.slots.values()}) == 1
    assert len({s.node for s in dealt.placement.slots.values()}) == 3


def test_kinds_have_workers_of_their_own_where_a_node_has_two() -> None:
    found = first_decision(named("liu"), cluster(600.0, slots=2), TOPOLOGY)
    stateful = {s for i, s in found.placement.slots.items() if i.operator == "count"}
    stateless = {s for i, s in found.placement.slots.items() if i.operator != "count"}
    assert stateful and stateless and not stateful & stateless


def test_shares_are_those_of_the_first_decision_if_they_are_held() -> None:
    fixed = with_shares(named("fixed"), {"wordcount/split": 15.0, "wordcount/count": 5.0, "wordcount/source": 5.0})
    then = first_decision(fixed, cluster(), TOPOLOGY).then
    for held in (then.shares_pct, then.limits_pct):
        assert {i.operator: share for i, share in held.items()} == {"source": 5.0, "split": 15.0, "count": 5.0}
    assert not first_decision(fixed, cluster(), TOPOLOGY, enforce=False).then.limits_pct
    assert not first_decision(named("r-storm"), cluster(), TOPOLOGY).then.limits_pct


def test_an_operator_begins_with_as_many_instances_as_the_policy_says() -> None:
    most = replace(TOPOLOGY, operators=tuple(replace(o, max_parallelism=4) for o in TOPOLOGY.operators))
    found = first_decision(named("liu"), cluster(600.0), most)
    assert found.parallelism == {"source": 2, "split": 4, "count": 4}  # a source has what its input has
    assert len(found.placement) == 10
    stays = first_decision(with_options(named("liu"), {"at_maximum": False}), cluster(600.0), most)
    assert stays.parallelism == dict(wordcount.DEFAULT_PARALLELISM)


def test_without_a_policy_instances_are_dealt_and_nothing_is_held() -> None:
    found = first_decision(None, cluster(), TOPOLOGY)
    assert (found.by, found.then.shares_pct, found.then.limits_pct) == (UNSTEERED, {}, {})
    assert set(found.placement) == ALL_INSTANCES


def test_what_a_policy_leaves_open_is_told_in_one_line() -> None:
    too_much = with_shares(named("fixed"), {f"wordcount/{o.name}": 50.0 for o in TOPOLOGY.operators})
    found = first_decision(too_much, cluster(), TOPOLOGY)
    assert _left(found)
    (said,) = found.said
    assert said.startswith("fixed does not place") and said.endswith("Spark places them")
    assert "\n" not in said


def test_a_decision_that_cannot_be_is_told_and_left_to_spark() -> None:
    def all_on_one(history: object, now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG001
        return PlaceDecision(Placement(dict.fromkeys(now.topologies[0].instances(), Slot("n1", 0))))

    crowding = replace(named("even"), name="crowding", placer=all_on_one)
    found = first_decision(crowding, cluster(seats=3), TOPOLOGY)
    (said,) = found.said
    assert "it would hold 7 instances and has 3 seats" in said and "Spark places every instance" in said
    assert (len(found.placement), found.parallelism) == (0, dict(wordcount.DEFAULT_PARALLELISM))


def test_as_json() -> None:
    told = first_decision(None, cluster(), TOPOLOGY).to_json()
    assert told["by"] == UNSTEERED
    assert told["parallelism"] == {"source": 2, "split": 2, "count": 3}
    assert isinstance(told["placement"], dict) and set(told["placement"]) == {
        f"{i.operator}/{i.index}" for i in ALL_INSTANCES
    }
