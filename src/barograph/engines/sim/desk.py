"""The priority manager, simulated: what a trigger does to its topology, and which topologies rest.

A trigger that the policy heeds has its topology drain; then its new level holds, and the topology is held until the
plan made for that level is in effect. A topology that no node is given rests: its sources read nothing, its rows wait.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barograph.engines.sim.changes import Change, after
from barograph.engines.sim.life import Phase
from barograph.engines.sim.triggers import Triggers

if TYPE_CHECKING:  # the engine hands itself over
    from barograph.engines.sim.engine import Simulator


class Desk:
    """One for an engine. resting: topologies that no node is given."""

    def __init__(self, engine: "Simulator") -> None:
        self._engine = engine
        self.triggers = Triggers(engine.scenario.workloads, engine.batches)
        self.resting: frozenset[str] = frozenset()
        self._heeds = False

    def heed_triggers(self, on: bool) -> None:
        """Before the run: whether triggers change levels. If they do, a topology with a trigger starts calm."""
        self._heeds = on
        engine = self._engine
        for t, workload in enumerate(engine.scenario.workloads):
            trigger = workload.trigger if on else None
            level = workload.topology.level if trigger is None else trigger.calm
            engine.topologies[t] = after(Change(level=level), engine.topologies[t])

    def pull_triggers(self) -> None:
        now_s = self._engine.now_s
        for t, level in self.triggers.turned(now_s):
            if self._heeds:
                self.triggers.asked(t, now_s)
                self._engine.lives[t].order(Change(level=level), now_s)

    @property
    def held(self) -> list[int]:
        """Topologies that have a new level and wait for the plan made for it; time does not go on before it came."""
        return [t for t, life in enumerate(self._engine.lives) if life.phase is Phase.HELD]

    def hold(self, t: int) -> None:
        """It is drained: its new level holds, and a plan has to be made for it."""
        engine = self._engine
        engine.topologies[t] = after(Change(level=engine.lives[t].change.level), engine.topologies[t])
        engine.version += 1
        engine.lives[t].hold(engine.now_s)
        self.triggers.drained(t, engine.now_s)

    def release(self, topologies: Iterable[int]) -> None:
        """The plan that these waited for is in effect, or there is none: they go on."""
        now_s = self._engine.now_s
        for t in topologies:
            life = self._engine.lives[t]
            if life.phase is not Phase.HELD:  # the plan has changed it, and it goes on already
                continue
            if life.change.level is not None:  # its trigger turned once more meanwhile
                self.hold(t)
            else:
                life.release(now_s)
                self.triggers.resumed(t, now_s)

    def rest(self, wanted: frozenset[str]) -> list[str]:
        """From now on these rest, and no others; what changed, in words."""
        begun, ended = sorted(wanted - self.resting), sorted(self.resting - wanted)
        self.resting = wanted
        return [f"the sources of {t} rest" for t in begun] + [f"the sources of {t} read again" for t in ended]
