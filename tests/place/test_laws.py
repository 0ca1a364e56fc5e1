"""Properties of every placer, for all inputs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.model import (
    Allotment,
    Cycle,
    Demand,
    Edge,
    EdgeTraffic,
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
from barograph.place import PlaceDecision, Placer
from barograph.place.adaptive.thrifty import Thrifty
from barograph.place.by_traffic import ByTraffic
from barograph.place.even import even
from barograph.place.few_disturbed import FewDisturbed
from barograph.place.offline import Offline
from barograph.place.online import Online
from barograph.place.r_storm import RStorm
from barograph.place.support.cost import traffic_between
from barograph.place.support.spread import most_per_worker
from barograph.place.t_storm import TStorm
from barograph.place.whole_nodes import whole_nodes
from tests.cycles import workers_on
from tests.place.worked import ALL, farm
from tests.place.worked import world as one_topology


def by_traffic(history: Sequence[Cycle], now: Snapshot, demand: Demand, allotment: Allotment) -> PlaceDecision:  # noqa: ARG001
    """The schedule that online computes, as a Placer. Online itself may keep a placement that breaks a bound."""
    return ByTraffic().schedule(now, demand, allotment)


PLACERS: dict[str, Placer] = {
    "even": even,
    "offline": Offline(),
    "online": Online(),
    "by-traffic": by_traffic,
    "t-storm": TStorm(),
    "r-storm": RStorm(),
    "autoscale": RStorm(one_per_worker=True, anew_on_rescale=True),
    "few-disturbed": FewDisturbed(),
    "whole_nodes": whole_nodes,
    "thrifty": Thrifty(),
}
KEEP_CPU = ("by-traffic", "t-storm", "r-storm", "autoscale", "few-disturbed", "thrifty")
KEEP_MEMORY = ("r-storm", "autoscale", "thrifty")
LEAVE_NO_ROOM = ("few-disturbed", "thrifty")
HAIR = 1e-6
CYCLES_TO_SETTLE = 8  # from another placer's placement: freed seats and budgets of moves take some cycles

World = tuple[Snapshot, Demand]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    shared = draw(st.booleans())
    limits = st.none() | st.integers(1, 4)
    nodes = []
    for k in range(draw(st.integers(1, 4))):
        seats = draw(st.integers(1, 5)) if shared else draw(limits)
        memory = draw(st.none() | st.integers(200, 3000))
        slots = draw(st.integers(1, 3))
        nodes.append(Node(f"n{k}", draw(st.integers(50, 600)), slots=slots, seats=seats, memory_mb=memory))
    topologies, demands, traffic = [], [], []
    for t in range(draw(st.integers(1, 3))):
        counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        operators = []
        for k, count in enumerate(counts):
            share, memory = draw(st.integers(0, 120)), draw(st.integers(0, 800))
            operators.append(Operator(f"o{k}", count, k == 0, stateful=bool(k % 2), cpu_pct=share, memory_mb=memory))
            demands.append(OperatorDemand(f"t{t}", f"o{k}", count, (float(share),) * count))
        edges = tuple(Edge(f"o{k - 1}", f"o{k}") for k in range(1, len(counts)))
        for e in edges:
            shape = counts[int(e.source[1:])], counts[int(e.target[1:])]
            rows = draw(st.lists(st.integers(0, 50), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
            traffic.append(EdgeTraffic(f"t{t}", e.source, e.target, np.array(rows, dtype=float).reshape(shape)))
        workers = draw(st.none() | st.integers(1, 4))
        topologies.append(Topology(f"t{t}", tuple(operators), edges, workers=workers, level=draw(st.integers(1, 2))))
    live = workers_on(nodes) if shared else ()
    now = Snapshot(0, 1, tuple(nodes), tuple(topologies), live, traffic=tuple(traffic), shared_workers=shared)
    demand = Demand(tuple(demands))
    start = draw(st.sampled_from(["nothing", "even", "thrifty"]))
    if start != "nothing":
        now = replace(now, placement=PLACERS[start]((), now, demand, ALL).placement)
    return now, demand


def shares(demand: Demand) -> dict[Instance, float]:
    return {Instance(d.topology, d.operator, k): s for d in demand.operators for k, s in enumerate(d.shares_pct)}


def memory_of(now: Snapshot, instance: Instance) -> float:
    return now.topology(instance.topology).operator(instance.operator).memory_mb or 0.0


def seats(now: Snapshot) -> dict[Slot, float]:
    if now.shared_workers:
        return {w.slot: w.seats for w in now.workers}
    return {Slot(n.name, k): n.seats or np.inf for n in now.nodes for k in range(n.slots)}


@pytest.mark.parametrize("name", PLACERS)
@settings(max_examples=25, deadline=None)
@given(worlds())
def test_what_holds_for_all(name: str, world: World) -> None:
    now, demand = world
    decision = PLACERS[name]((), now, demand, ALL)
    instances = {i for t in now.topologies for i in t.instances()}
    refused = [r.what for r in decision.unplaced]
    # every instance has a place or a reason, never both
    assert set(decision.placement) <= instances
    assert sorted(refused) == sorted(str(i) for i in instances - set(decision.placement))
    assert all(r.reason for r in decision.unplaced)
    # seats, existing slots, one topology per slot
    room = seats(now)
    taken = Counter(decision.placement.slots.values())
    assert all(count <= room[slot] for slot, count in taken.items())
    if not now.shared_workers:
        owners = {(s, i.topology) for i, s in decision.placement.slots.items()}
        assert len({s for s, _ in owners}) == len(owners)
    # same input, same output
    assert PLACERS[name]((), now, demand, ALL) == decision


@pytest.mark.parametrize("name", PLACERS)
@settings(max_examples=25, deadline=None)
@given(worlds())
def test_a_placement_that_fits_is_not_changed(name: str, world: World) -> None:
    now, demand = world
    placement = PLACERS[name]((), now, demand, ALL).placement
    for _ in range(CYCLES_TO_SETTLE if now.placement else 1):
        again = PLACERS[name]((), replace(now, placement=placement), demand, ALL)
        if again.unplaced or again.placement == placement:
            return  # an instance without a place may find one when others have moved
        placement = again.placement
    pytest.fail("it keeps moving")


@pytest.mark.parametrize("name", KEEP_CPU)
@settings(max_examples=25, deadline=None)
@given(worlds())
def test_nothing_is_overcommitted(name: str, world: World) -> None:
    now, demand = world
    decision = PLACERS[name]((), now, demand, ALL)
    if any(r.code is ReasonCode.TOO_FEW_SLOTS for r in decision.reasons):
        return  # refused completely: running instances stay
    placement, share = decision.placement, shares(demand)
    for node in now.nodes:
        here = [i for i, s in placement.slots.items() if s.node == node.name]
        assert sum(share[i] for i in here) <= node.cpu_pct + HAIR
        if name in KEEP_MEMORY and node.memory_mb is not None:
            assert sum(memory_of(now, i) for i in here) <= node.memory_mb + HAIR


@pytest.mark.parametrize("name", LEAVE_NO_ROOM)
@settings(max_examples=30, deadline=None)
@given(worlds())
def test_nothing_is_unplaced_while_room_is_left(name: str, world: World) -> None:
    now, demand = world
    decision = PLACERS[name]((), now, demand, ALL)
    placed, share, room = decision.placement, shares(demand), seats(now)
    taken = Counter(placed.slots.values())
    owner = {s: i.topology for i, s in placed.slots.items()}
    for refusal in decision.unplaced:
        i = Instance.parse(refusal.what)
        for node in now.nodes:
            here = [j for j, s in placed.slots.items() if s.node == node.name]
            cpu = node.cpu_pct - sum(share[j] for j in here) >= share[i]
            memory = node.memory_mb is None or node.memory_mb - sum(memory_of(now, j) for j in here) >= memory_of(
                now, i
            )
            mine = (
                s
                for s in room
                if s.node == node.name and (now.shared_workers or owner.get(s, i.topology) == i.topology)
            )
            seat = any(taken[s] < room[s] for s in mine)
            if name == "few-disturbed":
                memory = True
                seat = seat and now.shared_workers  # else a kind has one worker per node
            assert not (cpu and memory and seat), f"{i} would fit on {node.name}"


@pytest.mark.parametrize("placer", [Offline, Online])
@settings(max_examples=30, deadline=None)
@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    workers=st.integers(1, 8),
    alpha=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    seed=st.integers(0, 1000),
)
def test_exactly_min_workers_and_at_most_m_instances(
    placer: type[Offline] | type[Online], counts: list[int], workers: int, alpha: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    sizes = {f"o{k}": c for k, c in enumerate(counts)}
    rates = {(a, b): rng.integers(0, 9, (sizes[a], sizes[b])).tolist() for a, b in pairwise(sizes)}
    now, _ = one_topology(sizes, rates, farm(3, slots=3), workers)
    decision = placer(alpha=alpha)((), now, Demand(()), ALL)
    size, used = sum(counts), Counter(decision.placement.slots.values())
    assert not decision.unplaced
    assert len(used) == min(workers, size)
    assert max(used.values()) <= most_per_worker(size, min(workers, size), alpha)


def test_traffic_counts_what_crosses() -> None:
    rows = np.array([[1.0, 2.0], [4.0, 8.0]])
    topology = Topology("t", (Operator("a", 2, True), Operator("b", 2)), (Edge("a", "b"),))
    nodes = (Node("n0", 100, slots=2), Node("n1", 100))
    now = Snapshot(0, 2, nodes, (topology,), traffic=(EdgeTraffic("t", "a", "b", rows),), shared_workers=False)
    at = {("a", 0): "n0/0", ("a", 1): "n1/0", ("b", 0): "n0/1", ("b", 1): "n1/0"}
    placement = Placement({Instance("t", o, k): Slot.parse(s) for (o, k), s in at.items()})
    # in 2 seconds: a0-b1 2 and a1-b0 4 cross nodes; a0-b0 1 crosses workers only
    assert traffic_between(now, Demand(()), placement) == (3.0, 3.5)
