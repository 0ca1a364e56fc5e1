"""Which nodes: kept if possible, unchanged if counts do not change; isolation as in Storm."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.allot import Allotter, Dps, Isolation, Shared, Sps
from barograph.model import (
    Allotment,
    Cycle,
    Demand,
    Instance,
    Node,
    Operator,
    OperatorDemand,
    Placement,
    ReasonCode,
    Slot,
    Snapshot,
    Topology,
)
from tests.cycles import nodes, remembered

NOTHING = Demand(())


def topology(
    name: str,
    desired: int | None = None,
    minimum: int | None = None,
    level: int = 2,
    workers: int | None = None,
    isolate_nodes: int = 0,
) -> Topology:
    return Topology(
        name,
        (Operator("s", 4, source=True),),
        level=level,
        desired_nodes=desired,
        minimum_nodes=minimum,
        workers=workers,
        isolate_nodes=isolate_nodes,
    )


USE_CASE_1 = (topology("a", 8, 4, 1), topology("b", 8, 4, 1), topology("c", 4, 2, 2), topology("d", 4, 2, 2))


def world(
    *topologies: Topology, count: int = 8, slots: int = 1, placed: dict[str, list[str]] | None = None
) -> Snapshot:
    """placed: topology -> nodes its instances are on, one instance each."""
    slots_of = {
        Instance(name, "s", i): Slot(node) for name, where in (placed or {}).items() for i, node in enumerate(where)
    }
    return Snapshot(0.0, 10.0, nodes(count, 100, slots), topologies, placement=Placement(slots_of))


def settled(allotter: Allotter, now: Snapshot) -> tuple[Allotment, list[Cycle]]:
    """The allotment of a first cycle, and a history with that cycle."""
    found = allotter([], now, NOTHING)
    return found, [remembered(now, allotment=found)]


def isolated(
    *topologies: Topology, count: int = 4, slots: int = 2, placed: dict[str, list[str]] | None = None
) -> Allotment:
    return Isolation()([], world(*topologies, count=count, slots=slots, placed=placed), NOTHING)


def test_use_case_1_names_its_nodes() -> None:
    now = world(*USE_CASE_1, count=16)
    found = Sps()([], now, NOTHING)
    assert [len(found.nodes[n]) for n in "abcd"] == [6, 6, 2, 2]
    assert len({node for mine in found.nodes.values() for node in mine}) == 16
    assert (found.starved, found.idle) == ((), ())


def test_starved_topologies_and_idle_nodes_are_named_with_reasons() -> None:
    now = world(*USE_CASE_1, count=7)
    found = Sps()([], now, NOTHING)
    assert found.starved == ("b", "d")
    assert len(found.idle) == 1
    assert found.nodes["b"] == ()
    (why,) = (r for r in found.reasons if r.about == "b")
    assert why.numbers["given_nodes"] == 0
    assert why.numbers["desired_nodes"] == 8


def test_a_trigger_takes_nodes_only_from_those_that_lose_them() -> None:
    """DPS use case 2: off 13 + 7, on 16 + 4. The first keeps its 13, the second keeps 4 of its 7."""
    one, two = topology("one", 16), topology("two", 8)
    off, history = settled(Dps(), world(one, two, count=20))
    on = Dps()(history, world(replace(one, level=1), two, count=20), NOTHING)
    assert [len(a.nodes["one"]) for a in (off, on)] == [13, 16]
    assert set(off.nodes["one"]) < set(on.nodes["one"])
    assert set(on.nodes["two"]) < set(off.nodes["two"])


def test_nodes_with_most_instances_are_kept() -> None:
    shrinking = world(topology("a", 1), topology("b", 3), count=4, placed={"a": ["n2", "n3", "n3"]})
    assert Dps()([], shrinking, NOTHING).nodes["a"] == ("n3",)


def test_a_lost_node_is_replaced_and_the_others_stay() -> None:
    before = world(topology("a", 2), topology("b", 2), count=5)
    first, history = settled(Dps(), before)
    assert first.nodes == {"a": ("n1", "n2"), "b": ("n3", "n4")}
    lost = replace(before, nodes=tuple(n for n in before.nodes if n.name != "n1"))
    second = Dps()(history, lost, NOTHING)
    assert second.nodes == {"a": ("n2", "n5"), "b": ("n3", "n4")}


def test_without_a_declaration_demand_says_how_many_nodes_are_desired() -> None:
    now = world(topology("a"), count=8)
    demand = Demand((OperatorDemand("a", "s", 4, (60.0,) * 4),))  # 240 on nodes of 100
    assert len(Sps()([], now, demand).nodes["a"]) == 3
    assert len(Sps()([], now, NOTHING).nodes["a"]) == 1


def test_a_bound_on_starving_makes_topologies_take_turns() -> None:
    now = world(topology("vip", 4, level=1), topology("low", 4), count=4)
    history: list[Cycle] = []
    served = []
    for _ in range(12):
        found = Dps(starve_cycles=3)(history, now, NOTHING)
        served.append(len(found.nodes["low"]))
        history.append(remembered(now, allotment=found))
    assert served == [0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1]
    thesis = Dps()([remembered(now, allotment=Allotment({"low": ()}, ("low",)))] * 50, now, NOTHING)
    assert thesis.starved == ("low",)


counts = st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(1, 3))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([Sps(), Dps()]), st.lists(counts, min_size=1, max_size=5), st.integers(1, 20), st.integers(0, 5))
def test_no_node_is_shared_and_unchanged_counts_keep_their_nodes(
    allotter: Allotter, them: list[tuple[int, int, int]], count: int, lost: int
) -> None:
    now = world(*(topology(f"t{i}", d, min(m, d), lv) for i, (d, m, lv) in enumerate(them)), count=count)
    first, history = settled(allotter, now)
    given_nodes = [n for mine in first.nodes.values() for n in mine]
    assert sorted([*given_nodes, *first.idle]) == sorted(n.name for n in now.nodes)
    assert allotter(history, now, NOTHING) == first
    after = replace(now, nodes=now.nodes[: max(1, count - lost)])
    second = allotter(history, after, NOTHING)
    alive = {n.name for n in after.nodes}
    for name, mine in second.nodes.items():
        before = first.nodes[name]
        if len(before) == len(mine) and alive.issuperset(before):
            assert mine == before
        kept = set(mine) & set(before)
        assert len(kept) == min(len(mine), len(alive.intersection(before)))


def test_shared_allows_every_node_to_every_topology() -> None:
    assert Shared()([], world(topology("a")), NOTHING) == Allotment()


def test_isolation_distributes_workers_evenly() -> None:
    found = isolated(topology("a", workers=5, isolate_nodes=2), topology("rest"), slots=4)
    assert dict(found.nodes) == {"a": ("n1", "n2")}
    assert dict(found.workers) == {"a": (3, 2)}
    assert found.starved == ()


def test_a_share_that_fits_on_no_machine_starves_and_all_others_wait() -> None:
    found = isolated(topology("a", workers=5, isolate_nodes=2), topology("rest"))
    assert dict(found.workers) == {"a": (2,)}
    assert found.starved == ("rest",)
    assert found.nodes["rest"] == ()
    assert found.reasons[0].code is ReasonCode.ISOLATION_SHORT


def test_machines_that_match_are_kept() -> None:
    found = isolated(topology("a", workers=2, isolate_nodes=2), placed={"a": ["n3", "n4"]})
    assert found.nodes["a"] == ("n3", "n4")


def test_a_machine_with_two_topologies_is_not_kept() -> None:
    found = isolated(topology("a", workers=1, isolate_nodes=1), topology("b"), placed={"a": ["n3"], "b": ["n3"]})
    assert found.nodes["a"] == ("n1",)


def test_machines_with_most_slots_are_chosen_first() -> None:
    now = world(topology("a", workers=3, isolate_nodes=1), count=3, slots=1)
    roomy = replace(now, nodes=(*now.nodes[:2], Node("big", 100, 3)))
    assert Isolation()([], roomy, NOTHING).nodes["a"] == ("big",)


@pytest.mark.parametrize("allotter", [Sps(), Dps(), Isolation(), Shared()], ids=lambda a: type(a).__name__)
def test_a_cluster_without_topologies_is_allowed(allotter: Allotter) -> None:
    found = allotter([], world(count=2), NOTHING)
    assert not found.nodes and not found.starved
