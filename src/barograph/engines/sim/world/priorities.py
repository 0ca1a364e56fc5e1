"""The priority manager, simulated: what a trigger does to its topology, and which topologies rest.

When a trigger turns and the policy heeds it, its topology drains; then the new level holds, and the topology is held
until the plan for that level is in effect. A topology without a node rests: its sources read nothing, its rows wait.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barograph.engines.sim.world.changes import TopologyChange, after
from barograph.engines.sim.world.topology_state import TopologyPhase
from barograph.engines.sim.world.triggers import Triggers

if TYPE_CHECKING:  # the engine passes itself
    from barograph.engines.sim.engine import Simulator


class SimulatedPriorities:
    """One for each engine. resting: topologies without a node."""

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
            engine.topologies[t] = after(TopologyChange(level=level), engine.topologies[t])

    def pull_triggers(self) -> None:
        now_s = self._engine.now_s
        for t, level in self.triggers.turned(now_s):
            if self._heeds:
                self.triggers.asked(t, now_s)
                self._engine.states[t].order(TopologyChange(level=level), now_s)

    @property
    def held(self) -> list[int]:
        """Topologies that have a new level and wait for a plan made for it; time does not advance before."""
        return [t for t, state in enumerate(self._engine.states) if state.phase is TopologyPhase.HELD]

    def hold(self, t: int) -> None:
        """It is drained: its new level holds, and a plan has to be made for it."""
        engine = self._engine
        engine.topologies[t] = after(TopologyChange(level=engine.states[t].change.level), engine.topologies[t])
        engine.version += 1
        engine.states[t].hold(engine.now_s)
        self.triggers.drained(t, engine.now_s)

    def release(self, topologies: Iterable[int]) -> None:
        """The plan that these waited for is in effect, or there is none: they go on."""
        now_s = self._engine.now_s
        for t in topologies:
            state = self._engine.states[t]
            if state.phase is not TopologyPhase.HELD:  # the plan has changed it, and it goes on already
                continue
            if state.change.level is not None:  # its trigger turned once more meanwhile
                self.hold(t)
            else:
                state.release(now_s)
                self.triggers.resumed(t, now_s)

    def rest(self, wanted: frozenset[str]) -> list[str]:
        """From now on exactly these rest. Returns what changed, as sentences."""
        begun, ended = sorted(wanted - self.resting), sorted(self.resting - wanted)
        self.resting = wanted
        return [f"the sources of {t} rest" for t in begun] + [f"the sources of {t} read again" for t in ended]
