"""The priority manager (Chakraborty) as a state machine: events in, the next state and instructions out, no I/O.

A trigger turns on or off -> the topology's sources pause -> it is drained, no row in flight -> the new level is stored
-> the scheduler reschedules -> sources resume. One that never drains is resumed with its old level, and that is told.
O, the overhead, is the time from trigger to resumed. Ours besides the thesis: a trigger that turned on stays on for a
while before anything but its user turns it off, and nobody starves for ever.

Times are seconds of a clock that goes on while we are down (wall time), so that what is stored keeps its meaning.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from barograph.model import Snapshot
from barograph.model.checks import BadInput, require_number, require_positive, require_whole

USER = "its user"


class Phase(StrEnum):
    """How far a topology is in the protocol."""

    STEADY = "steady"
    DRAINING = "draining"
    RESCHEDULING = "rescheduling"
    RESUMING = "resuming"


class Do(StrEnum):
    """What is to be done to a topology now. Each may be done twice without harm: it is, after a restart."""

    PAUSE = "pause"
    RESCHEDULE = "reschedule"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class Order:
    do: Do
    topology: str


@dataclass(frozen=True, slots=True)
class Limits:
    """drain_s, reschedule_s: patience with each step. again_s: a resume that was not confirmed is ordered again.

    least_on_s: a trigger stays on for so long, unless its user turns it off. most_starve_s: the longest that a topology
    may be without a node because of triggers; after it they are off for rest_s.
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
class Standing:
    """A topology's priority. level: what holds. calm: its level when no trigger is on.

    asked_s: when the change that is under way was asked for; since_s: when its present phase began. goal: the level it
    will have; old_calm, old_on: what is gone back to if it cannot. on, on_s: whether its trigger is on and since when.
    high: its level while the trigger is on. starved_s: since when it has had no node; rest_until_s: no trigger but its
    user's before.
    """

    calm: int = 2
    level: int = 2
    phase: Phase = Phase.STEADY
    asked_s: float = 0.0
    since_s: float = 0.0
    goal: int = 2
    on: bool = False
    on_s: float = 0.0
    old_calm: int = 2
    old_on: bool = False
    high: int = 1
    starved_s: float | None = None
    rest_until_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("calm", "level", "goal", "high"):
            require_whole(f"priority: {name}", getattr(self, name), 1)

    @property
    def wanted(self) -> int:
        return self.high if self.on else self.calm


@dataclass(frozen=True, slots=True)
class State:
    """All of it: stored whole after every step, and gone on with after a restart."""

    standings: Mapping[str, Standing] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "standings", MappingProxyType(dict(self.standings)))

    def of(self, topology: str) -> Standing:
        found = self.standings.get(topology)
        if found is None:
            raise BadInput(f"there is no topology {topology!r}; there are {', '.join(self.standings) or 'none'}")
        return found

    def but(self, topology: str, standing: Standing) -> "State":
        return State({**self.standings, topology: standing})


@dataclass(frozen=True, slots=True)
class Step:
    """What comes of an event: the state after it, orders, and what is worth telling, one sentence each."""

    state: State
    orders: tuple[Order, ...] = ()
    told: tuple[str, ...] = ()


def known(state: State, levels: Mapping[str, int]) -> State:
    """Topologies as the engine names them, with the levels they declare; who is gone is forgotten."""
    return State({name: state.standings.get(name) or Standing(n, n, goal=n) for name, n in levels.items()})


def set_level(state: State, topology: str, level: int, at_s: float) -> Step:
    """``priority set``: the level when no trigger is on. A trigger that is on is not touched by it."""
    require_whole("the level", level, 1)
    standing = replace(state.of(topology), calm=level)
    return _head_for(state, topology, standing, at_s)


def trigger(state: State, topology: str, on: bool, at_s: float, limits: Limits, level: int = 1, by: str = USER) -> Step:
    """The trigger of a topology turns on (its level is then ``level``) or off (its old level is restored)."""
    require_whole("the level", level, 1)
    standing = state.of(topology)
    if on == standing.on:
        return Step(state)
    if by != USER and on and at_s < standing.rest_until_s:
        return Step(state)
    if by != USER and not on and at_s - standing.on_s < limits.least_on_s:
        return Step(state)
    said = f"{topology}: trigger {'on' if on else 'off'} by {by}"
    if on:
        standing = replace(standing, on_s=at_s, high=level)
    step = _head_for(state, topology, replace(standing, on=on), at_s)
    return replace(step, told=(said, *step.told))


def drained(state: State, topology: str, at_s: float) -> Step:
    """No row of the topology is in flight any more."""
    standing = state.of(topology)
    if standing.phase is not Phase.DRAINING:
        return Step(state)
    standing = replace(standing, level=standing.goal, phase=Phase.RESCHEDULING, since_s=at_s)
    return Step(state.but(topology, standing), (Order(Do.RESCHEDULE, topology),))


def rescheduled(state: State, topology: str, at_s: float) -> Step:
    standing = state.of(topology)
    if standing.phase is not Phase.RESCHEDULING:
        return Step(state)
    return Step(state.but(topology, _resuming(standing, at_s)), (Order(Do.RESUME, topology),))


def resumed(state: State, topology: str, at_s: float) -> Step:
    """Rows flow again."""
    standing = state.of(topology)
    if standing.phase is not Phase.RESUMING:
        return Step(state)
    told = f"{topology}: level {standing.level}, resumed {at_s - standing.asked_s:.2f} s after it was asked for"
    standing = replace(standing, phase=Phase.STEADY, since_s=at_s)
    # What was asked for while this change was under way comes now.
    step = _head_for(state.but(topology, standing), topology, standing, at_s)
    return replace(step, told=(told, *step.told))


def tick(state: State, at_s: float, limits: Limits, starved: Iterable[str] = ()) -> Step:
    """Time passes: patience ends, and so does starving."""
    orders: list[Order] = []
    told: list[str] = []
    for name, standing in state.standings.items():
        late_s = at_s - standing.since_s
        if standing.phase is Phase.DRAINING and late_s >= limits.drain_s:
            back = replace(standing, goal=standing.level)
            if standing.wanted == standing.goal:  # else something was asked for since, and that is what is wanted
                back = replace(back, calm=standing.old_calm, on=standing.old_on)
                # What holds is what is wanted from here on, or it would try again for ever.
                back = back if back.wanted == back.level else _as_it_is(back)
            state = state.but(name, _resuming(back, at_s))
            orders.append(Order(Do.RESUME, name))
            told.append(f"{name}: not drained within {limits.drain_s:g} s; resumed with its old level {standing.level}")
        elif standing.phase is Phase.RESCHEDULING and late_s >= limits.reschedule_s:
            state = state.but(name, _resuming(standing, at_s))
            orders.append(Order(Do.RESUME, name))
            told.append(f"{name}: not rescheduled within {limits.reschedule_s:g} s; resumed where it is")
        elif standing.phase is Phase.RESUMING and late_s >= limits.again_s:
            state = state.but(name, replace(standing, since_s=at_s))
            orders.append(Order(Do.RESUME, name))
    state = _hungry(state, at_s, set(starved))
    too_long = [n for n, s in state.standings.items() if s.starved_s is not None and at_s - s.starved_s >= limits.most_starve_s]  # noqa: E501  # fmt: skip
    for name in [n for n, s in state.standings.items() if s.on and too_long]:
        standing = replace(state.of(name), rest_until_s=at_s + limits.rest_s)
        # A trigger is never too fresh to end somebody's starving.
        eager = replace(limits, least_on_s=0.0)
        by = f"the starving of {', '.join(too_long)}"
        step = trigger(state.but(name, standing), name, False, at_s, eager, by=by)
        state, orders, told = step.state, [*orders, *step.orders], [*told, *step.told]
    return Step(state, tuple(orders), tuple(told))


def recovered(state: State, at_s: float) -> Step:
    """After a restart: the step that each was in is ordered again, and its patience begins anew."""
    again = {Phase.DRAINING: Do.PAUSE, Phase.RESCHEDULING: Do.RESCHEDULE, Phase.RESUMING: Do.RESUME}
    orders = tuple(Order(again[s.phase], n) for n, s in state.standings.items() if s.phase in again)
    moved = {n: replace(s, since_s=at_s) if s.phase in again else s for n, s in state.standings.items()}
    return Step(State(moved), orders)


def with_levels(now: Snapshot, state: State) -> Snapshot:
    """What an engine saw, with the levels that hold."""
    levels = {name: s.level for name, s in state.standings.items()}
    topologies = tuple(replace(t, level=levels.get(t.name, t.level)) for t in now.topologies)
    return now if topologies == now.topologies else replace(now, topologies=topologies)


def _head_for(state: State, topology: str, standing: Standing, at_s: float) -> Step:
    """Start the protocol for the level that is wanted, unless a change is under way or nothing is to change."""
    if standing.phase is not Phase.STEADY or standing.wanted == standing.level:
        return Step(state.but(topology, standing))
    old = state.of(topology)
    standing = replace(standing, goal=standing.wanted, phase=Phase.DRAINING, asked_s=at_s, since_s=at_s)
    standing = replace(standing, old_calm=old.calm, old_on=old.on)
    return Step(state.but(topology, standing), (Order(Do.PAUSE, topology),))


def _as_it_is(standing: Standing) -> Standing:
    """Wanting the level that holds: by its trigger if that is the trigger's level, else without one."""
    if standing.high == standing.level != standing.calm:
        return replace(standing, on=True)
    return replace(standing, on=False, calm=standing.level)


def _resuming(standing: Standing, at_s: float) -> Standing:
    return replace(standing, phase=Phase.RESUMING, since_s=at_s)


def _hungry(state: State, at_s: float, starved: set[str]) -> State:
    return State(
        {
            name: replace(s, starved_s=(at_s if s.starved_s is None else s.starved_s) if name in starved else None)
            for name, s in state.standings.items()
        }
    )
