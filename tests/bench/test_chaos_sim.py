"""A controller on the simulator with faults from seeds keeps its laws; a controller without its guards does not.

``make bench ONLY=chaos-sim`` runs 100,000 cycles; ``BAROGRAPH_CHAOS_SEED=7`` runs one seed alone and tells its story.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from bench._chaos_laws import Change, oscillation
from bench._chaos_world import FAULTS
from bench.chaos_sim import GUARDS, attempt

import barograph.control.guards.stale as stale
from barograph.control.guards import Guards, OldFigures
from barograph.history.write import Recorder
from barograph.model import Instance, Slot
from bench import chaos_sim

CYCLES, PART = 10, 0.05


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos_sim, "ADAPTIVE_PART", PART)


@pytest.mark.parametrize("part", range(10))
def test_laws_hold_for_every_seed(part: int) -> None:
    for seed in range(part * 10, part * 10 + 10):
        told = attempt(seed, CYCLES)
        story = "\n".join([*told.story, *told.breaches])
        assert not told.breaches, f"BAROGRAPH_CHAOS_SEED={seed}:{CYCLES}:{PART}\n{story}"


def broken(guards: Guards = GUARDS, faults: Sequence[str] = FAULTS, cycles: int = 25) -> str:
    """The first breach of any seed, with the guards changed; empty where there is none."""
    return next((t.breaches[0] for seed in range(40) if (t := attempt(seed, cycles, guards, faults)).breaches), "")


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


def test_without_the_hold_of_stale_figures_a_law_is_broken() -> None:
    assert "s old" in broken(replace(GUARDS, stale_s=None), ("lost", "late", "zeroed"))


def test_figures_of_another_time_than_the_cycle_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stale, "REPORTS_S", 1e9)
    assert "s old" in broken(faults=("lost",))


def test_a_controller_that_forgets_its_acts_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barograph.control.loop.changes_since", lambda *_: iter(()))
    assert "after its last change" in broken(faults=("kill",), cycles=40)


def test_a_history_that_drops_entries_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Recorder._append

    def forgetful(self: Recorder, entry: object) -> None:
        if self._next % 7 == 6:
            self._next += 1  # a number is left out
        else:
            append(self, entry)  # type: ignore[arg-type]

    monkeypatch.setattr(Recorder, "_append", forgetful)
    assert "are missing" in broken(faults=())


def test_an_exception_is_a_breach_and_the_story_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> OldFigures:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("barograph.control.loop.OldFigures.of", fails)
    told = attempt(3, 10)
    assert "on purpose" in told.breaches[0] and "policy" in told.story[0]


def test_the_same_seed_tells_the_same_story() -> None:
    assert attempt(5, CYCLES) == attempt(5, CYCLES)


def test_rows_that_vanish_break_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barograph.engines.sim.grains.flow_state.FlowState.unaccounted", lambda *_: 5.0)
    assert "unaccounted" in broken(faults=())
