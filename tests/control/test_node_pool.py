"""Nodes are released when they were idle for long enough, and fetched before they are needed."""

from dataclasses import dataclass, field, replace

import pytest
from tests.cycles import chain, remembered, workers_on

from barograph.control.node_pool import COMING_S, NodeOrders, Upkeep, awake, fetch_time_s, keep_nodes
from barograph.model import (
    BadInput,
    Cycle,
    Demand,
    Instance,
    Node,
    Operator,
    OperatorDemand,
    Placement,
    Plan,
    Slot,
    Snapshot,
)

UPKEEP = Upkeep(release_after_s=60.0, spare=1)
TOPOLOGY = chain(Operator("s", 1, source=True), Operator("k", 1))
SMALL, MIDDLE, LARGE = Node("n1", 60.0, 1, 8), Node("n2", 30.0, 1, 8), Node("n3", 90.0, 1, 8)


def demand(pct: float, instances: int = 2) -> Demand:
    return Demand((OperatorDemand("t", "s", instances, (pct / instances,) * instances),))


def at(
    at_s: float,
    on: tuple[str, ...] = ("n1",),
    there: tuple[Node, ...] = (SMALL, MIDDLE, LARGE),
    asleep: tuple[Node, ...] = (),
    pct: float = 40.0,
    to: tuple[str, ...] = (),
) -> Cycle:
    """A cycle in which instances sit on the nodes ``on``, and are to go to the nodes ``to``."""

    def places(names: tuple[str, ...]) -> Placement:
        return Placement({Instance("t", "s", k): Slot(name) for k, name in enumerate(names)})

    snapshot = Snapshot(at_s, 10.0, there, (TOPOLOGY,), workers_on(there), places(on), asleep=asleep)
    return replace(remembered(snapshot, demand(pct), plan=Plan(places(to))), demand=demand(pct))


def idle_for(seconds: float, **more: object) -> list[Cycle]:
    """Every ten seconds so far; the present cycle is at 200 s."""
    return [at(200.0 - s, **more) for s in range(int(seconds), 0, -10)]  # type: ignore[arg-type]  # by name


@dataclass(frozen=True)
class Case:
    now: Cycle
    past: list[Cycle] = field(default_factory=lambda: idle_for(90))
    upkeep: Upkeep = UPKEEP
    ahead_pct: float = 40.0
    instances: int = 2
    release: tuple[str, ...] = ()
    fetch: tuple[str, ...] = ()


AWAY = (MIDDLE, LARGE)
CASES = {
    "the smaller of two idle ones goes, the larger is spare": Case(at(200), release=("n2",)),
    "not before its time": Case(at(200), idle_for(50)),
    "just in time": Case(at(200), idle_for(60), release=("n2",)),
    "no spare wanted": Case(at(200), upkeep=replace(UPKEEP, spare=0), release=("n2", "n3")),
    "two spares wanted": Case(at(200), upkeep=replace(UPKEEP, spare=2)),
    "one that held an instance meanwhile stays": Case(
        at(200), [*idle_for(90)[:-2], at(180.0, ("n1", "n2")), at(190.0)], release=("n3",)
    ),
    "one that is to get an instance is not idle": Case(at(200, to=("n2",))),
    "one that was away meanwhile stays": Case(
        at(200), [*idle_for(90)[:-3], at(170.0, there=(SMALL, LARGE)), at(180.0), at(190.0)], release=("n3",)
    ),
    "one node stays where nothing runs": Case(
        at(200, ()), idle_for(90, on=()), replace(UPKEEP, spare=0), 0.0, 0, release=("n2", "n1")
    ),
    "no release where the rest would be too full": Case(at(200), upkeep=replace(UPKEEP, spare=0), ahead_pct=130.0),
    "one may go where two would be missed": Case(
        at(200), upkeep=replace(UPKEEP, spare=0), ahead_pct=100.0, release=("n2",)
    ),
    "nor where it would be back at once": Case(at(200), upkeep=replace(UPKEEP, spare=0), ahead_pct=110.0),
    "no release when a node was just fetched": Case(
        at(200), [*idle_for(90)[:-3], at(170.0, there=(SMALL, MIDDLE), asleep=(LARGE,)), at(180.0), at(190.0)]
    ),
    "no release where seats would be short": Case(at(200), upkeep=replace(UPKEEP, spare=0), instances=17),
    "no release while off": Case(at(200), upkeep=Upkeep(None)),
    "turned off, all come back": Case(at(200, there=(SMALL,), asleep=AWAY), upkeep=Upkeep(None), fetch=("n2", "n3")),
    "the spare is used: another is fetched": Case(at(200, ("n1", "n3"), (SMALL, LARGE), (MIDDLE,)), fetch=("n2",)),
    "the spare is about to be used": Case(at(200, ("n1",), (SMALL, LARGE), (MIDDLE,), to=("n3",)), fetch=("n2",)),
    "enough is there": Case(at(200, there=(SMALL, LARGE), asleep=(MIDDLE,)), []),
    "the smallest that suffices": Case(
        at(200, there=(SMALL,), asleep=AWAY), [], replace(UPKEEP, spare=0), ahead_pct=70.0, fetch=("n2",)
    ),
    "the largest where the smallest does not suffice": Case(
        at(200, there=(SMALL,), asleep=AWAY), [], replace(UPKEEP, spare=0), ahead_pct=100.0, fetch=("n3",)
    ),
    "both where one does not suffice": Case(
        at(200, there=(SMALL,), asleep=AWAY), [], replace(UPKEEP, spare=0), ahead_pct=140.0, fetch=("n3", "n2")
    ),
    "more than there are": Case(
        at(200, there=(SMALL,), asleep=AWAY), [], replace(UPKEEP, spare=0), ahead_pct=900.0, fetch=("n3", "n2")
    ),
    "seats": Case(at(200, there=(SMALL,), asleep=AWAY), [], replace(UPKEEP, spare=0), instances=9, fetch=("n3",)),
    "one that comes is counted on": Case(
        at(200, ("n1",), (SMALL,), (MIDDLE,)), [at(190.0, there=(SMALL,), asleep=AWAY)], ahead_pct=100.0
    ),
    "one that never came is not": Case(
        at(200, ("n1",), (SMALL,), (MIDDLE,)), [at(199 - COMING_S, there=(SMALL,), asleep=AWAY)], fetch=("n2",)
    ),
    "one that came and died is not": Case(
        at(200, ("n1",), (SMALL,), (MIDDLE,)),
        [at(180.0, there=(SMALL,), asleep=AWAY), at(190.0, there=(SMALL, LARGE), asleep=(MIDDLE,))],
        fetch=("n2",),
    ),
    "no release while another node starts": Case(
        at(200, ("n1",), (SMALL, MIDDLE)),
        idle_for(90, there=(SMALL, MIDDLE), asleep=(LARGE,)),
        replace(UPKEEP, spare=0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_nodes_that_go_and_come(name: str) -> None:
    case = CASES[name]
    found = keep_nodes(case.upkeep, case.past, case.now, demand(case.ahead_pct, max(case.instances, 1)))
    assert (found.release, found.fetch) == (case.release, case.fetch)
    assert [r.about for r in found.reasons] == [*case.release, *case.fetch]
    assert bool(found) == bool(case.release or case.fetch)


def test_the_cluster_as_it_would_be() -> None:
    now = at(200, there=(SMALL,), asleep=AWAY).snapshot
    found = awake(now)
    assert (found.nodes, found.asleep, found.cluster_cpu_pct) == ((SMALL, MIDDLE, LARGE), (), 180.0)
    assert [(w.slot.node, w.seats) for w in found.workers] == [("n1", 8), ("n2", 8), ("n3", 8)]
    assert awake(found) == found


def test_how_long_a_fetch_takes_is_learned() -> None:
    assert fetch_time_s(UPKEEP, idle_for(90)) == UPKEEP.fetch_s
    past = [
        at(100.0, there=(SMALL,), asleep=(LARGE,)), at(110.0, there=(SMALL,), asleep=(LARGE,)),
        at(120.0, there=(SMALL,)), at(130.0, there=(SMALL,)), at(138.0, there=(SMALL, LARGE)),
    ]  # fmt: skip
    assert fetch_time_s(UPKEEP, past) == 28.0


@pytest.mark.parametrize(
    "wrong", [{"release_after_s": -1.0}, {"spare": -1}, {"spare": 0.5}, {"fill_pct": 0.0}, {"fetch_s": 0.0}]
)
def test_rules_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput, match=f"nodes: {next(iter(wrong))}"):
        Upkeep(**{"release_after_s": None, **wrong})  # type: ignore[arg-type]  # wrong on purpose


def test_nothing_to_do_is_false() -> None:
    assert not NodeOrders()
