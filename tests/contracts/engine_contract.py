"""The contract of every engine behind the port, as tests. Subclass it with an engine and run it.

The engine runs one topology, ``wordcount``: source -> split -> count with 2, 2 and 3 instances, split stateless, count
stateful, the source fixed, rows flowing all the time; on three nodes, node-1 to node-3, of one worker with 8 seats
each. A subclass has a fixture ``engine`` that gives a fresh one for each test, and says how time passes and how rows
are counted. The tests assume no durations: they wait for conditions.
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


def works(snapshot: Snapshot, operator: str) -> bool:
    """Whether rows went through the operator."""
    return executed(snapshot, operator) > 0


def epoch(snapshot: Snapshot) -> int:
    return next(t.epoch for t in snapshot.topology_metrics if t.topology == TOPOLOGY)


def elsewhere(snapshot: Snapshot, moved: Instance) -> Slot:
    """A worker other than the instance's, on another node if there is one."""
    here = snapshot.placement[moved]
    return min((w.slot for w in snapshot.workers if w.slot != here), key=lambda s: (s.node == here.node, s))


def assert_sound(snapshot: Snapshot) -> None:
    """Every running instance has a seat in a live worker, and no worker has more instances than seats."""
    running = {i for t in snapshot.topologies for i in t.instances()}
    assert set(snapshot.placement) == running
    for slot, count in Counter(snapshot.placement.slots.values()).items():
        worker = snapshot.worker(slot)
        assert worker is not None, f"{slot} holds instances and no worker"
        assert count <= worker.seats


BAD_PLANS: dict[str, Callable[[Snapshot], Plan]] = {
    "unknown topology": lambda s: Plan(Placement({Instance("unknown", "split", 0): s.workers[0].slot})),
    "unknown operator": lambda s: Plan(Placement({instance("join", 0): s.workers[0].slot})),
    "index too high": lambda s: Plan(Placement({instance("split", 99): s.workers[0].slot})),
    "unknown node": lambda _: Plan(Placement({instance("split", 0): Slot("node-99")})),
    "no such slot": lambda _: Plan(Placement({instance("split", 0): Slot("node-1", 99)})),
    "cut of an unknown topology": lambda _: Plan(cuts=("unknown",)),
    "scale of an unknown operator": lambda _: Plan(rescales=(Rescale(TOPOLOGY, "join", 2),)),
    "share above a core": lambda _: Plan(limits_pct={instance("split", 0): 101.0}),
    "share of an unknown instance": lambda _: Plan(limits_pct={instance("split", 99): 10.0}),
    "made from another state of the cluster": lambda s: Plan(version=s.version + 1),
    "more instances than seats in a worker": lambda s: Plan(
        Placement(dict.fromkeys(_all_instances(s, {"split": 4}), s.workers[0].slot)), (Rescale(TOPOLOGY, "split", 4),)
    ),
    "more instances than seats in all": lambda _: Plan(rescales=(Rescale(TOPOLOGY, "split", 99),)),
    "one good move and one bad": lambda s: Plan(
        Placement({instance("split", 0): elsewhere(s, instance("split", 0)), instance("split", 99): s.workers[0].slot})
    ),
    "a good share and a bad move": lambda _: Plan(
        Placement({instance("split", 0): Slot("node-99")}), limits_pct={instance("split", 1): 50.0}
    ),
}


def _all_instances(snapshot: Snapshot, counts: dict[str, int]) -> list[Instance]:
    return [instance(o, i) for o, n in {**parallelism(snapshot), **counts}.items() for i in range(n)]


class EngineContract(ABC):
    """An engine refuses what it cannot do, with a reason."""

    @abstractmethod
    def settle(self, engine: Engine, condition: Callable[[Snapshot], bool]) -> Snapshot:
        """Wait until an observation meets the condition and return it; fail the test if none does."""

    @abstractmethod
    def assert_exact(self, engine: Engine) -> None:
        """Every row that was due was counted exactly once, or still waits; none was lost, none counted twice."""

    def flowing(self, engine: Engine) -> Snapshot:
        return self.settle(engine, lambda s: all(works(s, o) for o in PARALLELISM))

    def test_a_snapshot_is_consistent(self, engine: Engine) -> None:
        seen = self.flowing(engine)
        assert parallelism(seen) == PARALLELISM
        assert {n.name for n in seen.nodes} == set(NODES)
        assert {w.slot.node: w.seats for w in seen.workers} == dict.fromkeys(NODES, SEATS)
        assert_sound(seen)
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

    def test_observers_take_nothing_from_each_other(self, engine: Engine) -> None:
        """An observer looks often while the controller looks too. Its cycles together have at least the rows of an
        observer that begins later and ends earlier, and at most those of one that begins earlier and ends later."""
        self.flowing(engine)
        began = {name: engine.observe(name).at_s for name in ("outer", "often", "inner")}
        often: list[Snapshot] = []
        # The first cycle began before that of "inner", so it may have rows that "inner" does not see.
        while min(sum(executed(s, operator) for s in often[1:]) for operator in PARALLELISM) < 50:
            assert len(often) < 500, "hardly any row went through"
            self.settle(engine, lambda s: s.at_s > 0)
            often.append(engine.observe("often"))
        inner = engine.observe("inner")
        often.append(engine.observe("often"))
        outer = engine.observe("outer")
        for seen in (inner, outer):
            assert seen.at_s - seen.cycle_s == pytest.approx(began["inner" if seen is inner else "outer"], abs=0.01)
        for operator in PARALLELISM:
            counted = sum(executed(s, operator) for s in often)
            assert 0 < executed(inner, operator) <= counted + 1e-6
            assert counted <= executed(outer, operator) + 1e-6

    def test_every_figure_has_an_age(self, engine: Engine) -> None:
        seen = self.flowing(engine)
        assert seen.metrics.age_s.shape == (len(seen.metrics.instances),)
        assert (seen.metrics.age_s < 3.0).all(), "every executor reports at least once a second"
        assert {n.node for n in seen.node_metrics if n.age_s < 3.0} == set(NODES)
        oldest_s = {
            key: max(seen.metrics.age_s[rows], default=0.0) for key, rows in seen.metrics.rows_of_operator.items()
        }
        assert seen.traffic and seen.topology_metrics
        assert [e.age_s for e in seen.traffic] == [oldest_s[e.topology, e.source] for e in seen.traffic]
        for told in seen.topology_metrics:
            assert told.age_s == max(age_s for (t, _), age_s in oldest_s.items() if t == told.topology)

    def test_an_empty_plan_does_nothing(self, engine: Engine) -> None:
        before = self.flowing(engine)
        outcome = engine.apply(Plan(version=before.version))
        assert outcome.ok
        assert outcome.done == ()
        after = self.flowing(engine)
        assert after.placement == before.placement
        assert (after.version, parallelism(after)) == (before.version, parallelism(before))

    @pytest.mark.parametrize("operator", ["source", "split", "count"])
    def test_a_move_takes_effect_and_moves_no_other_instance(self, engine: Engine, operator: str) -> None:
        before = self.flowing(engine)
        moved = instance(operator, 0)
        target = elsewhere(before, moved)
        outcome = engine.apply(Plan(Placement({moved: target}), version=before.version))
        assert outcome.ok, outcome.refused
        assert outcome.done != ()
        assert (outcome.moves, outcome.rescales) == (1, 0)
        after = self.settle(engine, lambda s: s.placement.get(moved) == target and works(s, operator))
        assert_sound(after)
        assert [m.instance for m in before.placement.moves_to(after.placement)] == [moved]
        self.assert_exact(engine)

    def test_moves_of_one_plan_take_effect_together(self, engine: Engine) -> None:
        before = self.flowing(engine)
        moves = {i: elsewhere(before, i) for i in before.placement}
        outcome = engine.apply(Plan(Placement(moves), version=before.version))
        assert outcome.ok, outcome.refused
        after = self.settle(engine, lambda s: s.placement == Placement(moves))
        assert_sound(after)
        self.flowing(engine)
        self.assert_exact(engine)

    @pytest.mark.parametrize("mode", [MigrationMode.BOUNDARY, MigrationMode.CUT, MigrationMode.WARM_CUT])
    def test_every_mode_without_a_restart_reaches_the_ordered_placement(
        self, engine: Engine, mode: MigrationMode
    ) -> None:
        before = self.flowing(engine)
        moved = instance("count", 1)
        target = elsewhere(before, moved)
        outcome = engine.apply(Plan(Placement({moved: target}), mode=mode))
        assert outcome.ok, outcome.refused
        self.settle(engine, lambda s: s.placement.get(moved) == target)
        self.flowing(engine)
        self.assert_exact(engine)

    @pytest.mark.parametrize("case", BAD_PLANS)
    def test_a_bad_plan_is_refused_completely(self, engine: Engine, case: str) -> None:
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
        moved, other = instance("split", 0), instance("split", 1)
        first = Plan(Placement({moved: elsewhere(before, moved)}), version=before.version)
        second = Plan(Placement({other: elsewhere(before, other)}), version=before.version)
        assert engine.apply(first).ok
        self.settle(engine, lambda s: s.placement.get(moved) == first.placement[moved])
        outcome = engine.apply(second)
        assert not outcome.ok
        assert self.flowing(engine).placement[other] == before.placement[other]

    def test_applying_a_plan_twice_changes_nothing_the_second_time(self, engine: Engine) -> None:
        before = self.flowing(engine)
        moved = instance("split", 1)
        plan = Plan(
            Placement({moved: elsewhere(before, moved)}),
            (Rescale(TOPOLOGY, "split", 3),),
            {instance("split", 0): 60.0},
        )
        first = engine.apply(plan)
        assert first.ok
        assert (first.moves, first.rescales) == (1, 1)
        once = self.settle(engine, lambda s: parallelism(s)["split"] == 3)
        again = engine.apply(plan)
        assert again.ok
        assert again.done == ()
        assert (again.moves, again.rescales) == (0, 0)
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
        after = self.settle(engine, lambda s: parallelism(s)["split"] == count and works(s, "count"))
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
            after = self.settle(engine, lambda s: parallelism(s)["count"] == 2 and works(s, "count"))
            assert_sound(after)
        self.assert_exact(engine)

    def test_a_fixed_operator_is_not_scaled_and_says_why(self, engine: Engine) -> None:
        before = self.flowing(engine)
        why = before.topology(TOPOLOGY).operator("source").fixed_because
        assert why
        outcome = engine.apply(Plan(rescales=(Rescale(TOPOLOGY, "source", 3),)))
        assert [r.reason for r in outcome.refused] == [why]
        assert parallelism(self.flowing(engine)) == PARALLELISM

    def test_shares_take_effect_without_a_cut(self, engine: Engine) -> None:
        before = self.flowing(engine)
        shares = Plan(limits_pct={instance("split", 0): 40.0}, version=before.version)
        outcome = engine.apply(shares)
        assert outcome.ok, outcome.refused
        assert len(outcome.done) == 1
        assert outcome.order_to_commit_s is None, "an epoch was ended"
        assert engine.apply(shares).done == (), "they hold already"
        after = self.flowing(engine)
        assert after.version == before.version
        assert after.placement == before.placement

    def test_counts_stay_exact_through_everything_at_once(self, engine: Engine) -> None:
        before = self.flowing(engine)
        target = elsewhere(before, instance("count", 0))
        steps = [
            Plan(Placement({instance("count", 0): target}), (Rescale(TOPOLOGY, "split", 4),)),
            Plan(cuts=(TOPOLOGY,), limits_pct={instance("count", 1): 50.0}),
            Plan(Placement({instance("split", 3): Slot("node-1")}), mode=MigrationMode.BOUNDARY),
            Plan(rescales=(Rescale(TOPOLOGY, "split", 1),)),
        ]
        for plan in steps:
            outcome = engine.apply(plan)
            assert outcome.ok, outcome.refused
            assert_sound(self.flowing(engine))
        self.assert_exact(engine)
