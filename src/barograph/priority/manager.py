"""Runs the priority state machine: takes events, saves the state to disk, and carries out its instructions.

All decisions are the state machine's; the engine implements pausing and draining (``PriorityHooks``).
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from barograph.config import default
from barograph.logs import OnceOnly
from barograph.model import BadInput
from barograph.model.checks import require
from barograph.priority import machine
from barograph.priority.clocks import not_ahead, shifted
from barograph.priority.machine import InstructionKind, PriorityLimits, PriorityPhase, PriorityState, Transition
from barograph.priority.store import load, save

log = logging.getLogger(__name__)

_REMEMBERED = 100
STATIC = "the present policy uses only the levels that users set"


class PriorityHooks(Protocol):
    """What an engine implements for the drain protocol. No call blocks, and each is idempotent."""

    def heeds_triggers(self) -> bool:
        """Whether the present policy reacts to triggers; true where there is no policy."""
        ...

    def pause(self, topology: str) -> None:
        """Its sources read no more."""
        ...

    def drained(self, topology: str) -> bool:
        """Whether none of its rows is in flight."""
        ...

    def reschedule(self, levels: Mapping[str, int]) -> bool:
        """Whether a plan for these levels has been applied."""
        ...

    def resume(self, topology: str) -> None: ...

    def flows(self, topology: str) -> bool:
        """Whether its sources read again."""
        ...


class PriorityManager:
    """One for each application. A new state is saved before its instructions are carried out.

    clock: never goes back, so that no wait becomes longer when the wall clock is set. wall: of what is saved.
    """

    def __init__(
        self,
        path: Path,
        hooks: PriorityHooks,
        limits: PriorityLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._path, self._hooks, self._clock, self._wall = path, hooks, clock, wall
        self._limits = limits or PriorityLimits()
        self._lock = threading.RLock()
        self.told: list[str] = []
        self.passed: list[tuple[float, str, PriorityPhase]] = []
        """When which topology came into which phase, the latest ones."""
        self._saved = True
        self._warnings = OnceOnly(log)
        stored, now_s = load(path), clock()
        self._state = not_ahead(shifted(stored, now_s - wall()), now_s, self._limits)
        self._take(machine.recovered(self._state, now_s))

    @property
    def state(self) -> PriorityState:
        with self._lock:
            return self._state

    def know(self, levels: Mapping[str, int]) -> None:
        """The topologies there are, with the levels they declare. A topology that is known keeps its priority."""
        with self._lock:
            self._take(Transition(machine.known(self._state, levels)))

    def set_level(self, topology: str, level: int) -> None:
        with self._lock:
            self._begin(machine.set_level(self._state, topology, level, self._clock()))

    def trigger(self, topology: str, on: bool, level: int | None = None, by: str = machine.USER) -> None:
        """level: None for the default of the option priority.level. Under a policy of static levels turning on only
        leaves a message. Turning off always works."""
        with self._lock:
            if on and not self._hooks.heeds_triggers():
                self._state.of(topology)  # an unknown topology is refused all the same
                self._take(Transition(self._state, told=(f"{topology}: trigger on by {by} changes nothing: {STATIC}",)))
                return
            high = default("priority.level") if level is None else level
            self._begin(machine.trigger(self._state, topology, on, self._clock(), self._limits, high, by))

    def turn(self, starved: Iterable[str] = ()) -> None:
        """Check how far each topology is and take the next step. Called often; it writes only what has changed."""
        with self._lock:
            # All steps that are possible are taken in one turn, because sources are paused meanwhile.
            for name in self._state.standings:
                if self._is_in(name, PriorityPhase.DRAINING) and self._hooks.drained(name):
                    self._take(machine.drained(self._state, name, self._clock()))
                if self._is_in(name, PriorityPhase.RESCHEDULING) and self._hooks.reschedule(self.levels()):
                    self._take(machine.rescheduled(self._state, name, self._clock()))
                if self._is_in(name, PriorityPhase.RESUMING) and self._hooks.flows(name):
                    self._take(machine.resumed(self._state, name, self._clock()))
            self._take(machine.tick(self._state, self._clock(), self._limits, starved))

    def levels(self) -> dict[str, int]:
        with self._lock:
            return {name: s.level for name, s in self._state.standings.items()}

    def verb(self, body: Any) -> Any:
        """Answers ``barograph priority`` for a driver's endpoint. Anything else is refused in one sentence."""
        require(isinstance(body, dict), "priority: the request must be an object")
        what = body.get("do")
        if what == "set":
            self.set_level(_text(body, "topology"), _whole(body, "level"))
        elif what == "trigger":
            require(isinstance(body.get("on"), bool), "priority: on must be true or false")
            require(not body["on"] or self._hooks.heeds_triggers(), f"a trigger would change nothing: {STATIC}")
            self.trigger(_text(body, "topology"), body["on"], _whole(body, "level") if "level" in body else None)
        elif what != "list":
            raise BadInput(f"priority: there is no {what!r}; there are list, set and trigger")
        return self.table()

    def table(self) -> list[dict[str, Any]]:
        with self._lock:
            return [
                {"topology": name, "level": s.level, "calm": s.calm, "trigger": s.on, "phase": s.phase.value}
                for name, s in self._state.standings.items()
            ]

    def _begin(self, step: Transition) -> None:
        """What was asked for is refused if it cannot be saved, since a restart would forget it."""
        if step.state != self._state:
            try:
                self._save(step.state)
            except OSError as error:
                where = f"the priorities cannot be saved in {str(self._path)!r}"
                raise BadInput(f"{where}: {error.strerror or error}; make room and ask again") from None
        self._take(step)

    def _take(self, step: Transition) -> None:
        if step.state != self._state or not self._saved:
            try:
                self._save(step.state)
                self._warnings.over("save")
            except OSError as error:
                # A change that is under way is completed all the same: sources are paused meanwhile.
                self._saved = False
                self._warnings.warn("save", f"priorities are not saved: {error}; the next step saves them too")
        if step.state != self._state:
            before, self._state = self._state, step.state
            self._note(before)
        self.told = [*self.told, *step.told][-_REMEMBERED:]
        for sentence in step.told:
            log.info("%s", sentence)
        for instruction in step.instructions:
            if instruction.kind is InstructionKind.PAUSE:
                self._hooks.pause(instruction.topology)
            elif instruction.kind is InstructionKind.RESUME:
                self._hooks.resume(instruction.topology)
            # Rescheduling is asked for in every turn until it is done.

    def _save(self, state: PriorityState) -> None:
        save(self._path, shifted(state, self._wall() - self._clock()))
        self._saved = True

    def _is_in(self, topology: str, phase: PriorityPhase) -> bool:
        return self._state.of(topology).phase is phase

    def _note(self, before: PriorityState) -> None:
        for name, standing in self._state.standings.items():
            old = before.standings.get(name)
            if standing.phase is not (PriorityPhase.STEADY if old is None else old.phase):
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
