"""The priority manager (Chakraborty) as a state machine: events in, the next state and instructions out, no I/O.

A trigger turns on or off -> the topology's sources pause -> it is drained, no row in flight -> the new level is stored
-> the scheduler reschedules -> sources resume. A topology that does not drain in time is resumed with its old level.
O, the overhead, is the time from trigger to resumed. Not in the thesis: a trigger that turned on stays on for some
time unless its user turns it off, and no topology stays without a node for ever.

Times are seconds of a clock that never goes back; a stored state has them as wall-clock times (``clocks``), so that it
is still valid after a restart.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from barograph.config import default
from barograph.model import Snapshot
from barograph.model.checks import BadInput, require_number, require_positive, require_whole

USER = "its user"


class PriorityPhase(StrEnum):
    """How far a topology is in the protocol."""

    STEADY = "steady"
    DRAINING = "draining"
    RESCHEDULING = "rescheduling"
    RESUMING = "resuming"


class InstructionKind(StrEnum):
    """What is to be done to a topology now. Each is idempotent, because a restart repeats it."""

    PAUSE = "pause"
    RESCHEDULE = "reschedule"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class Instruction:
    kind: InstructionKind
    topology: str


@dataclass(frozen=True, slots=True)
class PriorityLimits:
    """drain_s, reschedule_s: timeout of each step. again_s: after which an unconfirmed resume is ordered again.

    least_on_s: a trigger stays on for at least so long, unless its user turns it off. most_starve_s: the longest that a
    topology may be without a node because of triggers; after that they are off for rest_s.
    """

    drain_s: float = 10.0
    reschedule_s: float = 10.0
    again_s: float = 2.0
    least_on_s: float = 30.0
    most_starve_s: float = 300.0
    rest_s: float = 60.0

    def __post_init__(self) -> None:
        for name in ("drain_s", "reschedule_s", "again_s", "most_starve_s"):
            require_positive(f"priority: {name}", getattr(self, name))
        for name in ("least_on_s", "rest_s"):
            require_number(f"priority: {name}", getattr(self, name))


@dataclass(frozen=True, slots=True)
class TopologyPriority:
    """A topology's priority. level: what holds. calm: its level when no trigger is on.

    asked_s: when the change that is under way was asked for; since_s: when its present phase began. goal: the level it
    will have; old_calm, old_on: restored if the change fails. on, on_s: whether its trigger is on, and since when.
    high: its level while the trigger is on. starved_s: since when it has had no node; rest_until_s: until then only its
    user may turn a trigger on.
    """

    calm: int = default("query.level")
    level: int = default("query.level")
    phase: PriorityPhase = PriorityPhase.STEADY
    asked_s: float = 0.0
    since_s: float = 0.0
    goal: int = default("query.level")
    on: bool = False
    on_s: float = 0.0
    old_calm: int = default("query.level")
    old_on: bool = False
    high: int = default("priority.level")
    starved_s: float | None = None
    rest_until_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("calm", "level", "goal", "high"):
            require_whole(f"priority: {name}", getattr(self, name), 1)

    @property
    def wanted(self) -> int:
        return self.high if self.on else self.calm


@dataclass(frozen=True, slots=True)
class PriorityState:
    """The priorities of all topologies: saved after every transition, and loaded after a restart."""

    standings: Mapping[str, TopologyPriority] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "standings", MappingProxyType(dict(self.standings)))

    def of(self, topology: str) -> TopologyPriority:
        found = self.standings.get(topology)
        if found is None:
            raise BadInput(f"there is no topology {topology!r}; there are {', '.join(self.standings) or 'none'}")
        return found

    def but(self, topology: str, standing: TopologyPriority) -> "PriorityState":
        return PriorityState({**self.standings, topology: standing})


@dataclass(frozen=True, slots=True)
class Transition:
    """What follows from an event: the state after it, instructions, and messages for users, one sentence each."""

    state: PriorityState
    instructions: tuple[Instruction, ...] = ()
    told: tuple[str, ...] = ()


def known(state: PriorityState, levels: Mapping[str, int]) -> PriorityState:
    """Topologies as the engine names them, with the levels they declare; those that are gone are dropped."""
    return PriorityState(
        {name: state.standings.get(name) or TopologyPriority(n, n, goal=n) for name, n in levels.items()}
    )


def set_level(state: PriorityState, topology: str, level: int, at_s: float) -> Transition:
    """``priority set``: the level when no trigger is on. A trigger that is on is not touched by it."""
    require_whole("the level", level, 1)
    standing = replace(state.of(topology), calm=level)
    return _head_for(state, topology, standing, at_s)


def trigger(
    state: PriorityState,
    topology: str,
    on: bool,
    at_s: float,
    limits: PriorityLimits,
    level: int = default("priority.level"),
    by: str = USER,
) -> Transition:
    """The trigger of a topology turns on (its level is then ``level``) or off (its old level is restored)."""
    require_whole("the level", level, 1)
    standing = state.of(topology)
    if on == standing.on:
        return Transition(state)
    if by != USER and on and at_s < standing.rest_until_s:
        return Transition(state)
    if by != USER and not on and at_s - standing.on_s < limits.least_on_s:
        return Transition(state)
    said = f"{topology}: trigger {'on' if on else 'off'} by {by}"
    if on:
        standing = replace(standing, on_s=at_s, high=level)
    step = _head_for(state, topology, replace(standing, on=on), at_s)
    return replace(step, told=(said, *step.told))


def drained(state: PriorityState, topology: str, at_s: float) -> Transition:
    """No row of the topology is in flight any more."""
    standing = state.of(topology)
    if standing.phase is not PriorityPhase.DRAINING:
        return Transition(state)
    standing = replace(standing, level=standing.goal, phase=PriorityPhase.RESCHEDULING, since_s=at_s)
    return Transition(state.but(topology, standing), (Instruction(InstructionKind.RESCHEDULE, topology),))


def rescheduled(state: PriorityState, topology: str, at_s: float) -> Transition:
    standing = state.of(topology)
    if standing.phase is not PriorityPhase.RESCHEDULING:
        return Transition(state)
    return Transition(state.but(topology, _resuming(standing, at_s)), (Instruction(InstructionKind.RESUME, topology),))


def resumed(state: PriorityState, topology: str, at_s: float) -> Transition:
    """Rows flow again."""
    standing = state.of(topology)
    if standing.phase is not PriorityPhase.RESUMING:
        return Transition(state)
    told = f"{topology}: level {standing.level}, resumed {at_s - standing.asked_s:.2f} s after it was asked for"
    standing = replace(standing, phase=PriorityPhase.STEADY, since_s=at_s)
    # What was asked for while this change was under way starts now.
    step = _head_for(state.but(topology, standing), topology, standing, at_s)
    return replace(step, told=(told, *step.told))


def tick(state: PriorityState, at_s: float, limits: PriorityLimits, starved: Iterable[str] = ()) -> Transition:
    """Time passes: steps that take too long are given up, and starvation ends triggers."""
    instructions: list[Instruction] = []
    told: list[str] = []
    for name, standing in state.standings.items():
        late_s = at_s - standing.since_s
        if standing.phase is PriorityPhase.DRAINING and late_s >= limits.drain_s:
            back = replace(standing, goal=standing.level)
            if standing.wanted == standing.goal:  # else another level was asked for since, and that one is wanted
                back = replace(back, calm=standing.old_calm, on=standing.old_on)
                # From now on the present level is the wanted one; else the same change would start again.
                back = back if back.wanted == back.level else _as_it_is(back)
            state = state.but(name, _resuming(back, at_s))
            instructions.append(Instruction(InstructionKind.RESUME, name))
            told.append(f"{name}: not drained within {limits.drain_s:g} s; resumed with its old level {standing.level}")
        elif standing.phase is PriorityPhase.RESCHEDULING and late_s >= limits.reschedule_s:
            state = state.but(name, _resuming(standing, at_s))
            instructions.append(Instruction(InstructionKind.RESUME, name))
            told.append(f"{name}: not rescheduled within {limits.reschedule_s:g} s; resumed where it is")
        elif standing.phase is PriorityPhase.RESUMING and late_s >= limits.again_s:
            state = state.but(name, replace(standing, since_s=at_s))
            instructions.append(Instruction(InstructionKind.RESUME, name))
    state = _with_starvation(state, at_s, set(starved))
    too_long = [n for n, s in state.standings.items() if s.starved_s is not None and at_s - s.starved_s >= limits.most_starve_s]  # noqa: E501  # fmt: skip
    for name in [n for n, s in state.standings.items() if s.on and too_long]:
        standing = replace(state.of(name), rest_until_s=at_s + limits.rest_s)
        # Ending starvation overrides the least time that a trigger stays on.
        eager = replace(limits, least_on_s=0.0)
        by = f"starvation of {', '.join(too_long)}"
        step = trigger(state.but(name, standing), name, False, at_s, eager, by=by)
        state, instructions, told = step.state, [*instructions, *step.instructions], [*told, *step.told]
    return Transition(state, tuple(instructions), tuple(told))


def recovered(state: PriorityState, at_s: float) -> Transition:
    """After a restart: the present step of each topology is ordered again, and its timeout begins anew."""
    again = {
        PriorityPhase.DRAINING: InstructionKind.PAUSE,
        PriorityPhase.RESCHEDULING: InstructionKind.RESCHEDULE,
        PriorityPhase.RESUMING: InstructionKind.RESUME,
    }
    instructions = tuple(Instruction(again[s.phase], n) for n, s in state.standings.items() if s.phase in again)
    moved = {n: replace(s, since_s=at_s) if s.phase in again else s for n, s in state.standings.items()}
    return Transition(PriorityState(moved), instructions)


def with_levels(now: Snapshot, state: PriorityState) -> Snapshot:
    """The snapshot, with the levels that hold now."""
    levels = {name: s.level for name, s in state.standings.items()}
    topologies = tuple(replace(t, level=levels.get(t.name, t.level)) for t in now.topologies)
    return now if topologies == now.topologies else replace(now, topologies=topologies)


def _head_for(state: PriorityState, topology: str, standing: TopologyPriority, at_s: float) -> Transition:
    """Start the protocol for the level that is wanted, unless a change is under way or nothing is to change."""
    if standing.phase is not PriorityPhase.STEADY or standing.wanted == standing.level:
        return Transition(state.but(topology, standing))
    old = state.of(topology)
    standing = replace(standing, goal=standing.wanted, phase=PriorityPhase.DRAINING, asked_s=at_s, since_s=at_s)
    standing = replace(standing, old_calm=old.calm, old_on=old.on)
    return Transition(state.but(topology, standing), (Instruction(InstructionKind.PAUSE, topology),))


def _as_it_is(standing: TopologyPriority) -> TopologyPriority:
    """The present level as the wanted one: with the trigger on if it is the trigger's level, else off."""
    if standing.high == standing.level != standing.calm:
        return replace(standing, on=True)
    return replace(standing, on=False, calm=standing.level)


def _resuming(standing: TopologyPriority, at_s: float) -> TopologyPriority:
    return replace(standing, phase=PriorityPhase.RESUMING, since_s=at_s)


def _with_starvation(state: PriorityState, at_s: float, starved: set[str]) -> PriorityState:
    return PriorityState(
        {
            name: replace(s, starved_s=(at_s if s.starved_s is None else s.starved_s) if name in starved else None)
            for name, s in state.standings.items()
        }
    )
