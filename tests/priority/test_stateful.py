"""Any events in any order, and restarts: sources are paused as long as the protocol says, and never for ever."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barograph.priority import machine
from barograph.priority.machine import InstructionKind, PriorityLimits, PriorityPhase, PriorityState, Transition

NAMES = ("a", "b", "c")
LIMITS = PriorityLimits(most_starve_s=60.0)
PAUSED = (PriorityPhase.DRAINING, PriorityPhase.RESCHEDULING)
names = st.sampled_from(NAMES)
levels = st.integers(1, 3)


class Priorities(RuleBasedStateMachine):
    """paused: as the engine was told. since_s: since when each topology is."""

    @initialize(first=st.tuples(levels, levels, levels))
    def begin(self, first: tuple[int, int, int]) -> None:
        self.now_s = 1000.0
        self.state = machine.known(PriorityState(), dict(zip(NAMES, first, strict=True)))
        self.paused: dict[str, float] = {}

    def take(self, step: Transition) -> None:
        self.state = step.state
        for order in step.instructions:
            if order.kind is InstructionKind.PAUSE:
                self.paused.setdefault(order.topology, self.now_s)
            elif order.kind is InstructionKind.RESUME:
                self.paused.pop(order.topology, None)

    @rule(name=names, level=levels)
    def set_level(self, name: str, level: int) -> None:
        self.take(machine.set_level(self.state, name, level, self.now_s))

    @rule(name=names, on=st.booleans(), level=levels, by=st.sampled_from((machine.USER, "its rate")))
    def trigger(self, name: str, on: bool, level: int, by: str) -> None:
        self.take(machine.trigger(self.state, name, on, self.now_s, LIMITS, level, by))

    @rule(name=names)
    def drained(self, name: str) -> None:
        self.take(machine.drained(self.state, name, self.now_s))

    @rule(name=names)
    def rescheduled(self, name: str) -> None:
        self.take(machine.rescheduled(self.state, name, self.now_s))

    @rule(name=names)
    def resumed(self, name: str) -> None:
        self.take(machine.resumed(self.state, name, self.now_s))

    @rule(seconds=st.floats(0, 30), starved=st.sets(names))
    def time_passes(self, seconds: float, starved: set[str]) -> None:
        self.now_s += seconds
        self.take(machine.tick(self.state, self.now_s, LIMITS, starved))

    @rule()
    def restart(self) -> None:
        """The orders of the present step are given again; timeouts begin anew."""
        self.take(machine.recovered(self.state, self.now_s))
        self.paused = dict.fromkeys(self.paused, self.now_s)

    @invariant()
    def sources_are_paused_as_the_protocol_says(self) -> None:
        if hasattr(self, "state"):
            assert set(self.paused) == {n for n, s in self.state.standings.items() if s.phase in PAUSED}

    @invariant()
    def what_is_steady_has_the_level_that_is_wanted(self) -> None:
        for s in self.state.standings.values() if hasattr(self, "state") else ():
            assert s.phase is not PriorityPhase.STEADY or s.level == s.wanted

    def teardown(self) -> None:
        """If nothing happens any more, nothing stays paused and all comes to rest."""
        if not hasattr(self, "state"):
            return
        for _ in range(40):
            self.now_s += LIMITS.drain_s + LIMITS.reschedule_s
            self.take(machine.tick(self.state, self.now_s, LIMITS))
            for name in NAMES:
                self.take(machine.resumed(self.state, name, self.now_s))
        assert not self.paused
        assert all(s.phase is PriorityPhase.STEADY for s in self.state.standings.values())


TestPriorities = Priorities.TestCase
TestPriorities.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
