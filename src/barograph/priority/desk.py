"""The priority manager at work: takes events, keeps the state on disk, and has its orders carried out.

It decides nothing that the machine does not; what pausing and draining mean is the engine's business (``Taps``).
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from barograph.model import BadInput
from barograph.model.checks import require
from barograph.priority import machine
from barograph.priority.machine import Do, Limits, Phase, State, Step
from barograph.priority.store import load, save

_REMEMBERED = 100
STATIC = "the policy that steers keeps to the levels that users set"


class Taps(Protocol):
    """What an engine offers for the drain protocol. No call waits; each may come twice."""

    def heeds_triggers(self) -> bool:
        """Whether triggers mean anything to the policy that steers now; where none steers, they do."""
        ...

    def pause(self, topology: str) -> None:
        """Its sources read no more."""
        ...

    def drained(self, topology: str) -> bool:
        """Whether none of its rows is in flight."""
        ...

    def reschedule(self, levels: Mapping[str, int]) -> bool:
        """Whether the scheduler has made its plan with these levels hold."""
        ...

    def resume(self, topology: str) -> None: ...

    def flows(self, topology: str) -> bool:
        """Whether its sources read again."""
        ...


class Desk:
    """One for an application. The state is saved before anything is done that follows from it."""

    def __init__(
        self, path: Path, taps: Taps, limits: Limits | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._path, self._taps, self._clock = path, taps, clock
        self._limits = limits or Limits()
        self._lock = threading.RLock()
        self.told: list[str] = []
        self.passed: list[tuple[float, str, Phase]] = []
        """When which topology came into which phase, the latest ones."""
        self._state = load(path)
        self._take(machine.recovered(self._state, clock()))

    @property
    def state(self) -> State:
        with self._lock:
            return self._state

    def know(self, levels: Mapping[str, int]) -> None:
        """The topologies there are, with the levels they declare. Who is known keeps its priority."""
        with self._lock:
            self._take(Step(machine.known(self._state, levels)))

    def set_level(self, topology: str, level: int) -> None:
        with self._lock:
            self._take(machine.set_level(self._state, topology, level, self._clock()))

    def trigger(self, topology: str, on: bool, level: int = 1, by: str = machine.USER) -> None:
        """Under a policy of static levels nothing pauses and nothing changes; that is told. Off always counts."""
        with self._lock:
            if on and not self._taps.heeds_triggers():
                self._state.of(topology)  # one that is not there is refused all the same
                self._take(Step(self._state, told=(f"{topology}: trigger on by {by} changes nothing: {STATIC}",)))
                return
            self._take(machine.trigger(self._state, topology, on, self._clock(), self._limits, level, by))

    def turn(self, starved: Iterable[str] = ()) -> None:
        """Look how far everybody is and go on. Called often; a turn in which nothing happened writes nothing."""
        with self._lock:
            # One step follows the other at once where it can: sources are held back meanwhile.
            for name in self._state.standings:
                if self._is_in(name, Phase.DRAINING) and self._taps.drained(name):
                    self._take(machine.drained(self._state, name, self._clock()))
                if self._is_in(name, Phase.RESCHEDULING) and self._taps.reschedule(self.levels()):
                    self._take(machine.rescheduled(self._state, name, self._clock()))
                if self._is_in(name, Phase.RESUMING) and self._taps.flows(name):
                    self._take(machine.resumed(self._state, name, self._clock()))
            self._take(machine.tick(self._state, self._clock(), self._limits, starved))

    def levels(self) -> dict[str, int]:
        with self._lock:
            return {name: s.level for name, s in self._state.standings.items()}

    def verb(self, body: Any) -> Any:
        """For a driver's endpoint: what ``barograph priority`` asks. Anything else is refused in one sentence."""
        require(isinstance(body, dict), "priority: the request must be an object")
        what = body.get("do")
        if what == "set":
            self.set_level(_text(body, "topology"), _whole(body, "level"))
        elif what == "trigger":
            require(isinstance(body.get("on"), bool), "priority: on must be true or false")
            require(not body["on"] or self._taps.heeds_triggers(), f"a trigger would change nothing: {STATIC}")
            self.trigger(_text(body, "topology"), body["on"], _whole(body, "level") if "level" in body else 1)
        elif what != "list":
            raise BadInput(f"priority: there is no {what!r}; there are list, set and trigger")
        return self.table()

    def table(self) -> list[dict[str, Any]]:
        with self._lock:
            return [
                {"topology": name, "level": s.level, "calm": s.calm, "trigger": s.on, "phase": s.phase.value}
                for name, s in self._state.standings.items()
            ]

    def _take(self, step: Step) -> None:
        if step.state != self._state:
            save(self._path, step.state)
            before, self._state = self._state, step.state
            self._note(before)
        self.told = [*self.told, *step.told][-_REMEMBERED:]
        for order in step.orders:
            if order.do is Do.PAUSE:
                self._taps.pause(order.topology)
            elif order.do is Do.RESUME:
                self._taps.resume(order.topology)
            # To reschedule is asked for in every turn until it is done.

    def _is_in(self, topology: str, phase: Phase) -> bool:
        return self._state.of(topology).phase is phase

    def _note(self, before: State) -> None:
        for name, standing in self._state.standings.items():
            old = before.standings.get(name)
            if standing.phase is not (Phase.STEADY if old is None else old.phase):
                self.passed = [*self.passed, (standing.since_s, name, standing.phase)][-_REMEMBERED:]


def _text(body: Mapping[str, Any], name: str) -> str:
    require(isinstance(body.get(name), str), f"priority: {name} must be text, not {body.get(name)!r}")
    return str(body[name])


def _whole(body: Mapping[str, Any], name: str) -> int:
    value = body.get(name)
    require(
        isinstance(value, int) and not isinstance(value, bool) and value >= 1,
        f"priority: {name} must be a whole number of at least 1, not {value!r}",
    )
    return int(value)  # type: ignore[arg-type]  # it is one
