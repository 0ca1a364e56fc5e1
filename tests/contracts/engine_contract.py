"""What any engine behind the port must keep, in code. Subclass it, give it an engine, and run it.

The engine runs one topology, ``wordcount``: source -> split -> count with 2, 2 and 3 instances, split stateless, count
stateful, the source fixed, rows flowing all the time; on three nodes, node-1 to node-3, of one worker with 8 seats
each. A subclass has a fixture ``engine`` that gives a fresh one for each test, and says how time passes and how rows
are counted. Nothing here knows how long anything takes: it waits for conditions.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable

import pytest

from barograph.engines.port import Engine
from barograph.model import Instance, MigrationMode, Placement, Plan, Rescale, Slot, Snapshot

TOPOLOGY = "wordcount"
PARALLELISM = {"source": 2, "split": 2, "count": 3}
NODES = ("node-1", "node-2", "node-3")
SEATS = 8


def instance(operator: str, index: int) -> Instance:
    return Instance(TOPOLOGY, operator, index)


def parallelism(snapshot: Snapshot) -> dict[str, int]:
    return {o.name: o.parallelism for o in snapshot.topology(TOPOLOGY).operators}


def executed(snapshot: Snapshot, operator: str) -> float:
    return snapshot.metrics.of_operator(TOPOLOGY, operator).executed


def epoch(snapshot: Snapshot) -> int:
    return next(t.epoch for t in snapshot.topology_metrics if t.topology == TOPOLOGY)


def elsewhere(snapshot: Snapshot, who: Instance) -> Slot:
    """A worker where the instance is not, on another node if there is one."""
    here = snapshot.placement[who]
    return min((w.slot for w in snapshot.workers if w.slot != here), key=lambda s: (s.node == here.node, s))


def assert_sound(snapshot: Snapshot) -> None:
    """Everything that runs has a seat in a live worker, and no worker has more instances than seats."""
    running = {i for t in snapshot.topologies for i in t.instances()}
    assert set(snapshot.placement) == running
    for slot, count in Counter(snapshot.placement.slots.values()).items():
        worker = snapshot.worker(slot)
        assert worker is not None, f"{slot} holds instances and no worker"
        assert count <= worker.seats


BAD_PLANS: dict[str, Callable[[Snapshot], Plan]] = {
    "unknown topology": lambda s: Plan(Placement({Instance("nobody", "split", 0): s.workers[0].slot})),
    "unknown operator": lambda s: Plan(Placement({instance("join", 0): s.workers[0].slot})),
    "index too high": lambda s: Plan(Placement({instance("split", 99): s.workers[0].slot})),
    "unknown node": lambda _: Plan(Placement({instance("split", 0): Slot("node-99")})),
    "no such slot": lambda _: Plan(Placement({instance("split", 0): Slot("node-1", 99)})),
    "cut of an unknown topology": lambda _: Plan(cuts=("nobody",)),
    "scale of an unknown operator": lambda _: Plan(rescales=(Rescale(TOPOLOGY, "join", 2),)),
    "share above a core": lambda _: Plan(limits_pct={instance("split", 0): 101.0}),
    "share of an unknown instance": lambda _: Plan(limits_pct={instance("split", 99): 10.0}),
    "made from another state of the cluster": lambda s: Plan(version=s.version + 1),
    "more instances than seats in a worker": lambda s: Plan(
        Placement(dict.fromkeys(_everyone(s, {"split": 4}), s.workers[0].slot)), (Rescale(TOPOLOGY, "split", 4),)
    ),
    "more instances than seats in all": lambda _: Plan(rescales=(Rescale(TOPOLOGY, "split", 99),)),
    "one good move and one bad": lambda s: Plan(
        Placement({instance("split", 0): elsewhere(s, instance("split", 0)), instance("split", 99): s.workers[0].slot})
    ),
    "a good share and a bad move": lambda _: Plan(
        Placement({instance("split", 0): Slot("node-99")}), limits_pct={instance("split", 1): 50.0}
    ),
}


def _everyone(snapshot: Snapshot, counts: dict[str, int]) -> list[Instance]:
    return [instance(o, i) for o, n in {**parallelism(snapshot), **counts}.items() for i in range(n)]


class EngineContract(ABC):
    """What an engine cannot do it refuses, with a reason; it says here which of these it can."""

    meters = True  # snapshots carry metrics and traffic
    enforces_shares = True
    modes: tuple[MigrationMode, ...] = (MigrationMode.BOUNDARY, MigrationMode.CUT, MigrationMode.WARM_CUT)

    @abstractmethod
    def settle(self, engine: Engine, condition: Callable[[Snapshot], bool]) -> Snapshot:
        """Let time pass until an observation meets the condition, and give that one; fail the test if none does."""

    @abstractmethod
    def assert_exact(self, engine: Engine) -> None:
        """Every row that fell due was counted exactly once, or still waits; none was lost, none counted twice."""

    def works(self, snapshot: Snapshot, operator: str) -> bool:
        """Whether rows went through the operator; all there is to see without metering is that it runs."""
        return executed(snapshot, operator) > 0 if self.meters else bool(snapshot.placement)

    def flowing(self, engine: Engine) -> Snapshot:
        return self.settle(engine, lambda s: all(self.works(s, o) for o in PARALLELISM))

    def shares(self, percent: dict[Instance, float]) -> dict[Instance, float]:
        return percent if self.enforces_shares else {}

    def test_what_is_seen_is_sound(self, engine: Engine) -> None:
        seen = self.flowing(engine)
        assert parallelism(seen) == PARALLELISM
        assert {n.name for n in seen.nodes} == set(NODES)
        assert {w.slot.node: w.seats for w in seen.workers} == dict.fromkeys(NODES, SEATS)
        assert_sound(seen)
        if not self.meters:
            return
        assert set(seen.metrics.instances) == set(seen.placement)
        assert {(t.source, t.target) for t in seen.traffic} == {("source", "split"), ("split", "count")}
        for edge in seen.traffic:
            assert edge.rows.shape == (PARALLELISM[edge.source], PARALLELISM[edge.target])
            assert edge.rows.sum() > 0

    def test_time_passes_between_observations(self, engine: Engine) -> None:
        first = self.flowing(engine)
        then = self.settle(engine, lambda s: s.at_s > first.at_s)
        assert then.cycle_s > 0
        assert then.version == first.version

    def test_an_empty_plan_does_nothing(self, engine: Engine) -> None:
        before = self.flowing(engine)
        outcome = engine.apply(Plan(version=before.version))
        assert outcome.ok
        assert outcome.done == ()
        after = self.flowing(engine)
        assert after.placement == before.placement
        assert (after.version, parallelism(after)) == (before.version, parallelism(before))

    @pytest.mark.parametrize("operator", ["source", "split", "count"])
    def test_a_move_takes_effect_and_touches_nobody_else(self, engine: Engine, operator: str) -> None:
        before = self.flowing(engine)
        who = instance(operator, 0)
        target = elsewhere(before, who)
        outcome = engine.apply(Plan(Placement({who: target}), version=before.version))
        assert outcome.ok, outcome.refused
        assert outcome.done != ()
        after = self.settle(engine, lambda s: s.placement.get(who) == target and self.works(s, operator))
        assert_sound(after)
        assert [m.instance for m in before.placement.moves_to(after.placement)] == [who]
        self.assert_exact(engine)

    def test_moves_of_one_plan_hold_together(self, engine: Engine) -> None:
        before = self.flowing(engine)
        moves = {i: elsewhere(before, i) for i in before.placement}
        outcome = engine.apply(Plan(Placement(moves), version=before.version))
        assert outcome.ok, outcome.refused
        after = self.settle(engine, lambda s: s.placement == Placement(moves))
        assert_sound(after)
        self.flowing(engine)
        self.assert_exact(engine)

    @pytest.mark.parametrize("mode", [MigrationMode.BOUNDARY, MigrationMode.CUT, MigrationMode.WARM_CUT])
    def test_every_mode_without_a_restart_ends_where_it_should(self, engine: Engine, mode: MigrationMode) -> None:
        before = self.flowing(engine)
        who = instance("count", 1)
        target = elsewhere(before, who)
        outcome = engine.apply(Plan(Placement({who: target}), mode=mode))
        if mode not in self.modes:
            assert [r.what for r in outcome.refused] == [f"mode {mode}"]
            return
        assert outcome.ok, outcome.refused
        self.settle(engine, lambda s: s.placement.get(who) == target)
        self.flowing(engine)
        self.assert_exact(engine)

    @pytest.mark.parametrize("case", BAD_PLANS)
    def test_a_bad_plan_is_refused_whole(self, engine: Engine, case: str) -> None:
        before = self.flowing(engine)
        outcome = engine.apply(BAD_PLANS[case](before))
        assert not outcome.ok
        assert outcome.done == ()
        for refusal in outcome.refused:
            assert refusal.what
            assert refusal.reason
        after = self.flowing(engine)
        assert after.placement == before.placement
        assert (after.version, parallelism(after)) == (before.version, parallelism(before))

    def test_a_plan_made_before_a_change_is_stale(self, engine: Engine) -> None:
        before = self.flowing(engine)
        who, other = instance("split", 0), instance("split", 1)
        first = Plan(Placement({who: elsewhere(before, who)}), version=before.version)
        second = Plan(Placement({other: elsewhere(before, other)}), version=before.version)
        assert engine.apply(first).ok
        self.settle(engine, lambda s: s.placement.get(who) == first.placement[who])
        outcome = engine.apply(second)
        assert not outcome.ok
        assert self.flowing(engine).placement[other] == before.placement[other]

    def test_applying_a_plan_twice_changes_nothing_the_second_time(self, engine: Engine) -> None:
        before = self.flowing(engine)
        who = instance("split", 1)
        plan = Plan(
            Placement({who: elsewhere(before, who)}),
            (Rescale(TOPOLOGY, "split", 3),),
            self.shares({instance("split", 0): 60.0}),
        )
        assert engine.apply(plan).ok
        once = self.settle(engine, lambda s: parallelism(s)["split"] == 3)
        again = engine.apply(plan)
        assert again.ok
        assert again.done == ()
        twice = self.flowing(engine)
        assert twice.placement == once.placement
        assert (twice.version, parallelism(twice)) == (once.version, parallelism(once))

    def test_a_cut_ends_the_epoch(self, engine: Engine) -> None:
        before = self.flowing(engine)
        outcome = engine.apply(Plan(cuts=(TOPOLOGY,)))
        assert outcome.ok, outcome.refused
        after = self.settle(engine, lambda s: epoch(s) > epoch(before))
        assert after.placement == before.placement
        self.assert_exact(engine)

    @pytest.mark.parametrize("count", [1, 4])
    def test_a_stateless_operator_is_scaled(self, engine: Engine, count: int) -> None:
        self.flowing(engine)
        outcome = engine.apply(Plan(rescales=(Rescale(TOPOLOGY, "split", count),)))
        assert outcome.ok, outcome.refused
        after = self.settle(engine, lambda s: parallelism(s)["split"] == count and self.works(s, "count"))
        assert_sound(after)
        assert parallelism(after) == {**PARALLELISM, "split": count}
        self.assert_exact(engine)

    def test_a_stateful_operator_is_scaled_or_says_why_not(self, engine: Engine) -> None:
        before = self.flowing(engine)
        why = before.topology(TOPOLOGY).operator("count").fixed_because
        outcome = engine.apply(Plan(rescales=(Rescale(TOPOLOGY, "count", 2),)))
        if why:
            assert [r.reason for r in outcome.refused] == [why]
        else:
            assert outcome.ok, outcome.refused
            after = self.settle(engine, lambda s: parallelism(s)["count"] == 2 and self.works(s, "count"))
            assert_sound(after)
        self.assert_exact(engine)

    def test_a_fixed_operator_is_not_scaled_and_says_why(self, engine: Engine) -> None:
        before = self.flowing(engine)
        why = before.topology(TOPOLOGY).operator("source").fixed_because
        assert why
        outcome = engine.apply(Plan(rescales=(Rescale(TOPOLOGY, "source", 3),)))
        assert [r.reason for r in outcome.refused] == [why]
        assert parallelism(self.flowing(engine)) == PARALLELISM

    def test_shares_bite_without_a_cut(self, engine: Engine) -> None:
        before = self.flowing(engine)
        outcome = engine.apply(Plan(limits_pct={instance("split", 0): 60.0}, version=before.version))
        if not self.enforces_shares:
            assert [r.what for r in outcome.refused] == ["CPU shares"]
            return
        assert outcome.ok, outcome.refused
        after = self.flowing(engine)
        assert after.version == before.version
        assert after.placement == before.placement

    def test_counts_stay_exact_through_everything_at_once(self, engine: Engine) -> None:
        before = self.flowing(engine)
        target = elsewhere(before, instance("count", 0))
        steps = [
            Plan(Placement({instance("count", 0): target}), (Rescale(TOPOLOGY, "split", 4),)),
            Plan(cuts=(TOPOLOGY,), limits_pct=self.shares({instance("count", 1): 50.0})),
            Plan(Placement({instance("split", 3): Slot("node-1")}), mode=MigrationMode.BOUNDARY),
            Plan(rescales=(Rescale(TOPOLOGY, "split", 1),)),
        ]
        for plan in steps:
            outcome = engine.apply(plan)
            assert outcome.ok, outcome.refused
            assert_sound(self.flowing(engine))
        self.assert_exact(engine)
