"""Whatever happens in whatever order (requests, restarts, kills, full disks, clocks that are set, a failing engine),
the manager pauses only what the protocol says, promises only what is stored, and leaves nothing paused."""

import errno
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barograph.model import BadInput
from barograph.priority import PriorityManager
from barograph.priority import manager as manager_module
from barograph.priority.machine import USER, PriorityLimits, PriorityPhase, PriorityState
from barograph.priority.store import load, save

NAMES = ("a", "b")
LEVELS = {"a": 2, "b": 3}
LIMITS = PriorityLimits(most_starve_s=60.0)
PAUSED = (PriorityPhase.DRAINING, PriorityPhase.RESCHEDULING)
names = st.sampled_from(NAMES)


class KilledError(BaseException):
    """The driver's process is gone."""


class Gates:
    """The engine's side, new with each driver. dies: at the next order. fails: when it is asked anything."""

    def __init__(self) -> None:
        self.paused: set[str] = set()
        self.still: set[str] = set()
        self.flowing: set[str] = set()
        self.planned, self.dies, self.fails = False, False, False

    def heeds_triggers(self) -> bool:
        return True

    def pause(self, topology: str) -> None:
        self._ordered()
        self.paused.add(topology)

    def resume(self, topology: str) -> None:
        self._ordered()
        self.paused.discard(topology)

    def drained(self, topology: str) -> bool:
        self._asked()
        return topology in self.still

    def reschedule(self, _levels: Mapping[str, int]) -> bool:
        self._asked()
        return self.planned

    def flows(self, topology: str) -> bool:
        self._asked()
        return topology in self.flowing and topology not in self.paused

    def _ordered(self) -> None:
        if self.dies:
            raise KilledError

    def _asked(self) -> None:
        if self.fails:
            raise RuntimeError("no executor answers")


class Managed(RuleBasedStateMachine):
    @initialize()
    def first_driver(self) -> None:
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="priorities-", dir=place))
        self.path = self.folder / "priorities.json"
        self.mono_s, self.wall_s, self.full = 1000.0, 1.7e9, False
        self._patch = patch.object(manager_module, "save", self.save)
        self._patch.start()
        self.open()

    def save(self, path: Path, state: PriorityState) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(path, state)

    def open(self) -> None:
        """A new driver: none of its sources is paused until it is told so."""
        self.gates = Gates()
        self.manager = PriorityManager(self.path, self.gates, LIMITS, lambda: self.mono_s, lambda: self.wall_s)
        self.manager.know(LEVELS)

    def standings(self) -> dict[str, tuple[object, ...]]:
        """Without times."""
        return {n: (s.level, s.calm, s.on, s.phase) for n, s in self.manager.state.standings.items()}

    def ask(self, what: dict[str, object]) -> None:
        before, paused = self.standings(), set(self.gates.paused)
        try:
            self.manager.verb(what)
        except BadInput as error:
            assert self.full, error
            assert (self.standings(), self.gates.paused) == (before, paused), "what is refused changes nothing"
        except KilledError:
            self.restart()
        else:
            assert not self.full or self.standings() == before, "what cannot be stored is not promised"

    @rule(name=names, level=st.integers(1, 3))
    def set_level(self, name: str, level: int) -> None:
        self.ask({"do": "set", "topology": name, "level": level})

    @rule(name=names, on=st.booleans(), level=st.integers(1, 3))
    def trigger(self, name: str, on: bool, level: int) -> None:
        self.ask({"do": "trigger", "topology": name, "on": on, "level": level})

    @rule(
        seconds=st.floats(0, 30), still=st.sets(names), planned=st.booleans(), flowing=st.sets(names),
        starved=st.sets(names),
    )  # fmt: skip
    def turn(self, seconds: float, still: set[str], planned: bool, flowing: set[str], starved: set[str]) -> None:
        self.mono_s += seconds
        self.wall_s += seconds
        self.gates.still, self.gates.planned, self.gates.flowing = still, planned, flowing
        try:
            self.manager.turn(starved)
        except RuntimeError:
            assert self.gates.fails
        except KilledError:
            self.restart()

    @rule(by_s=st.floats(-1e6, 1e6))
    def the_wall_clock_is_set(self, by_s: float) -> None:
        self.wall_s += by_s

    @rule(full=st.booleans())
    def the_disk_fills_or_has_room(self, full: bool) -> None:
        self.full = full

    @rule(fails=st.booleans())
    def the_engine_fails_or_answers(self, fails: bool) -> None:
        self.gates.fails = fails

    @rule()
    def the_driver_will_be_killed_at_its_next_order(self) -> None:
        self.gates.dies = True

    @rule()
    def restart(self) -> None:
        stored = load(self.path)
        self.mono_s = 5.0  # another clock that never goes back
        self.open()
        for name, standing in stored.standings.items():
            now = self.manager.state.of(name)
            assert (now.level, now.calm, now.on) == (standing.level, standing.calm, standing.on)

    @invariant()
    def only_what_drains_or_is_rescheduled_is_paused(self) -> None:
        """A topology that was paused before its driver's restart is not paused again once it was drained."""
        if hasattr(self, "manager"):
            phases = {n: s.phase for n, s in self.manager.state.standings.items()}
            assert {n for n, p in phases.items() if p is PriorityPhase.DRAINING} <= self.gates.paused
            assert self.gates.paused <= {n for n, p in phases.items() if p in PAUSED}

    @invariant()
    def what_holds_is_stored(self) -> None:
        if hasattr(self, "manager") and not self.full and self.manager._saved:
            stored = {n: (s.level, s.calm, s.on, s.phase) for n, s in load(self.path).standings.items()}
            assert stored == self.standings()

    def teardown(self) -> None:
        """If nothing but time goes on, on a full disk or not, nothing stays paused and all comes to rest."""
        if not hasattr(self, "manager"):
            return
        try:
            self.gates.dies = self.gates.fails = False
            for _ in range(40):
                self.turn(LIMITS.drain_s + LIMITS.reschedule_s, set(), False, set(NAMES), set())
            assert not self.gates.paused
            assert all(s.phase is PriorityPhase.STEADY for s in self.manager.state.standings.values())
            self.full = False
            self.manager.trigger("a", not self.manager.state.of("a").on, by=USER)
            self.what_holds_is_stored()
        finally:
            self._patch.stop()
            shutil.rmtree(self.folder)


TestManaged = Managed.TestCase
TestManaged.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
