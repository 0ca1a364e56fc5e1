"""A controller on the simulator with faults from seeds keeps its laws; a controller without its guards does not.

``make bench ONLY=chaos-sim`` runs 100,000 cycles; ``BAROGRAPH_CHAOS_SEED=7`` runs one seed alone and tells its story.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from bench._chaos_faults import FAULTS, SILENCES
from bench._chaos_laws import Change, oscillation
from bench._chaos_policy import restless
from bench._chaos_world import ChaosWorld
from bench.chaos_sim import GUARDS, attempt

import barograph.control.guards.stale as stale
from barograph.control.guards import Guards, OldFigures
from barograph.engines.spark.driver.client import DriverFailed
from barograph.history.entry import Entry
from barograph.history.write import Recorder
from barograph.model import Instance, Slot
from barograph.policy.definition import Policy
from barograph.policy.registry import named
from bench import chaos_sim

CYCLES, PART = 10, 0.05
LONG_CYCLES = 64  # long enough for the law of rest, which needs a minute without faults
OWN_MIND = ("adaptive", "even", "true-rate", "autoscale", "dps")  # policies that come to rest by themselves


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos_sim, "ADAPTIVE_PART", PART)


@pytest.mark.parametrize("part", range(10))
def test_laws_hold_for_every_seed(part: int) -> None:
    for seed in range(part * 10, part * 10 + 10):
        told = attempt(seed, CYCLES)
        story = "\n".join([*told.story, *told.breaches])
        assert not told.breaches, f"BAROGRAPH_CHAOS_SEED={seed}:{CYCLES}:{PART}\n{story}"


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow)])  # two seconds of two minutes each
def test_laws_hold_for_long_and_a_controller_comes_to_rest(part: int) -> None:
    rested = 0
    for seed in range(1000 + part * 4, 1000 + part * 4 + 4):
        name = OWN_MIND[seed % len(OWN_MIND)]
        told = attempt(seed, LONG_CYCLES, policy=named(name))
        story = "\n".join([*told.story, *told.breaches])
        assert not told.breaches, f"BAROGRAPH_CHAOS_SEED={seed}:{LONG_CYCLES}:{PART}:{name}\n{story}"
        rested += told.rests
    assert rested, "no seed of these was judged by the law of rest"


def broken(
    guards: Guards = GUARDS, faults: Sequence[str] = FAULTS, cycles: int = 25, policy: Policy | None = None
) -> str:
    """The first breach of any seed, with the guards or the policy changed; empty where there is none."""
    found = (attempt(seed, cycles, guards, faults, policy).breaches for seed in range(40))
    return next((breaches[0] for breaches in found if breaches), "")


def test_without_the_cooldown_a_law_is_broken() -> None:
    assert "after its last change" in broken(replace(GUARDS, cooldown_s=0.0), ())


def test_without_budgets_a_law_is_broken() -> None:
    free = replace(GUARDS, cuts_per_hour=None, moves_per_hour=None, rescales_per_hour=None)
    assert "within an hour" in broken(free, (), 60)


def test_an_instance_that_returns_breaks_a_law() -> None:
    instance, one, two = Instance("t", "k", 0), Slot("n-1"), Slot("n-2")
    there = Change(10.0, "t", 1, 0, False, False, {instance: one}, {instance: two})
    back = replace(there, at_s=40.0, before={instance: two}, after={instance: one})
    assert list(oscillation(GUARDS, [there, back])) == ["t/k/0 goes back to n-1/0, which it left 30 s ago"]
    assert list(oscillation(GUARDS, [there, replace(back, at_s=80.0)])) == []


def test_without_the_guard_of_returns_a_law_is_broken() -> None:
    assert "goes back to" in broken(replace(GUARDS, return_s=0.0), (), 40, restless())


def test_a_policy_without_patience_breaks_the_law_of_rest() -> None:
    """As published, each change of its shares may move instances, and each move makes a backlog that changes shares."""
    assert "without a change of load" in broken(GUARDS, (), LONG_CYCLES, replace(named("liu"), name="impatient"))


def test_a_placer_that_is_never_content_breaks_the_law_of_rest() -> None:
    discontent = replace(named("even"), name="discontent", placer=restless().placer)
    assert "without a change of load" in broken(GUARDS, (), LONG_CYCLES, discontent)


@pytest.mark.parametrize("silence", SILENCES)
def test_without_the_hold_of_stale_figures_a_law_is_broken(silence: str) -> None:
    assert "s old" in broken(replace(GUARDS, stale_s=None), (silence,))


@pytest.mark.parametrize("silence", ["lost", "repeated"])
def test_figures_of_another_time_than_the_cycle_are_noticed(silence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stale, "REPORTS_S", 1e9)
    assert "s old" in broken(faults=(silence,))


def test_repeated_figures_are_those_of_the_last_report_and_their_age_is_true() -> None:
    world = ChaosWorld(random.Random(1), 60.0, steady=True, faults=())
    world.advance(4.0)
    first = world.observe()
    name = first.topologies[0].name
    world.silent_until[name] = ("repeated", 1e9)
    world.advance(2.0)
    again = world.observe()
    mine = [k for k, i in enumerate(first.metrics.instances) if i.topology == name]
    assert sum(first.metrics.columns["arrived"][mine]) > 0
    for column, values in first.metrics.columns.items():
        assert list(again.metrics.columns[column][mine]) == list(values[mine]), column
    assert set(again.metrics.age_s[mine]) == {2.0} and world.covers_s[name] == 0.0
    assert [m for m in again.topology_metrics if m.topology == name] == [
        m for m in first.topology_metrics if m.topology == name
    ]
    world.silent_until.clear()
    world.advance(2.0)
    later = world.observe()  # what fell due meanwhile comes now
    assert world.covers_s[name] == 4.0 and set(later.metrics.age_s[mine]) == {0.0}


def test_a_controller_that_forgets_its_acts_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barograph.control.loop.changes_since", lambda *_: iter(()))
    assert "after its last change" in broken(faults=("kill",), cycles=40)


def test_a_history_that_drops_entries_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Recorder._append

    def forgetful(self: Recorder, entry: Entry) -> Entry:
        if self._next % 7 == 6:
            self._next += 1  # a number is left out
            return entry
        return append(self, entry)

    monkeypatch.setattr(Recorder, "_append", forgetful)
    assert "are missing" in broken(faults=())


def test_an_exception_is_a_breach_and_the_story_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> OldFigures:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("barograph.control.loop.OldFigures.of", fails)
    told = attempt(3, 10)
    assert "on purpose" in told.breaches[0] and "policy" in told.story[0]


def test_a_controller_that_ends_when_the_driver_fails_to_look_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barograph.control.loop.RuntimeError", KeyError, raising=False)
    assert "failed to look" in broken(faults=("observe fails",), cycles=CYCLES)


def test_a_look_fails_once_for_each_such_fault_and_no_law_is_broken() -> None:
    world = ChaosWorld(random.Random(1), 60.0, steady=True, faults=())
    world.advance(4.0)
    world.armed = ["observe fails", "not applied", "observe fails"]
    for _ in range(2):
        with pytest.raises(DriverFailed, match="failed to look"):
            world.observe()
    assert world.observe().topologies and world.armed == ["not applied"]
    seeds = [attempt(seed, CYCLES, faults=("observe fails",)) for seed in range(10)]
    assert [told.breaches for told in seeds] == [[]] * 10
    assert sum(told.faults for told in seeds) > 10


def test_the_same_seed_tells_the_same_story() -> None:
    assert attempt(5, CYCLES) == attempt(5, CYCLES)


def test_rows_that_vanish_break_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barograph.engines.sim.grains.flow_state.FlowState.unaccounted", lambda *_: 5.0)
    assert "unaccounted" in broken(faults=())
