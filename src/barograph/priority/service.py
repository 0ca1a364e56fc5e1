"""Priorities in a driver: a thread that runs the priority manager, and the answers to ``barograph priority``.

The state machine decides, the hooks act. It must never leave a topology paused for good, so an error in one turn does
not end the thread.
"""

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from barograph.engines.epoch_length import load_rows_s
from barograph.engines.spark.driver.endpoint import Endpoint, Verb
from barograph.engines.spark.driver.priority_hooks import SparkPriorityHooks
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.interfaces import PrioritisedQueries
from barograph.logs import OnceOnly
from barograph.model import BadInput
from barograph.priority.declared_triggers import DeclaredTriggers, TriggerWishes
from barograph.priority.machine import PriorityLimits, PriorityPhase
from barograph.priority.manager import PriorityHooks, PriorityManager
from barograph.priority.store import claim

log = logging.getLogger(__name__)

BUSY_S, CALM_S = 0.02, 1.0  # between two turns: while a change is under way, and while none is
AGAIN_S = 0.25  # after an error
START_S = 0.06  # and while only instances start: a turn costs CPU that they need
FORGET_S = 60.0  # a topology that does not run is forgotten after this time
SAMPLE_S = 1.0
OBSERVER = "rate triggers"


class PriorityService:
    """One for each driver. path: where priorities are stored; None: in the driver's folder."""

    def __init__(
        self,
        supervisor: Supervisor,
        path: Path | None = None,
        limits: PriorityLimits | None = None,
        hooks: PriorityHooks | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._supervisor, self._clock = supervisor, clock
        self._engine: PrioritisedQueries = supervisor.engine
        self._claim: IO[bytes] | None = None
        if path is None:
            path, self._claim = _claimed(supervisor)
        self.manager = PriorityManager(path, hooks or SparkPriorityHooks(supervisor), limits)
        self._seen_s = dict.fromkeys(self.manager.levels(), clock())
        self._wishes: dict[str, TriggerWishes] = {}
        self._sampled_s = float("-inf")
        self._lock = threading.Lock()
        self.problems: deque[str] = deque(maxlen=20)
        self._warnings = OnceOnly(log)
        self._wake, self._closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="priorities", daemon=True)
        self._thread.start()

    def __enter__(self) -> "PriorityService":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop. The next service that opens the same file completes what is under way."""
        self._closed.set()
        self._wake.set()
        self._thread.join()
        if self._claim is not None:
            self._claim.close()

    @property
    def verbs(self) -> dict[str, Verb]:
        return {"priority": self.verb}

    def verb(self, body: Any) -> Any:
        """Answers ``barograph priority``."""
        self._engine.refresh()
        self._know()
        try:
            return self.manager.verb(body)
        finally:
            self._wake.set()

    def trigger(self, topology: str, on: bool, level: int | None = None) -> None:
        """A call from the user's own code."""
        self._engine.refresh()
        self._know()
        self.manager.trigger(topology, on, level)
        self._wake.set()

    def watch(self, topology: str, triggers: DeclaredTriggers) -> None:
        """Turn the topology's trigger on and off by these rules."""
        self._wishes[topology] = TriggerWishes(triggers)

    def batch_seen(self, topology: str, values: Sequence[float]) -> None:
        """The values of a batch's rows, from the user's own code."""
        self._engine.refresh()
        self._know()
        wishes = self._wishes.get(topology)
        if wishes is None:
            known = f"there are {', '.join(self._wishes)}" if self._wishes else "set the option priority.above"
            raise BadInput(f"{topology!r} is no query with a trigger: {known}")
        wish = wishes.values_seen(values, self.manager.state.of(topology).on)
        if wish is not None:
            self.manager.trigger(topology, wish, wishes.triggers.level, "its raw events")
        self._wake.set()

    def turn(self) -> float:
        """One turn. Returns after how many seconds the next is due."""
        self._know()
        self._pull_triggers()
        self.manager.turn(starved=self._engine.gates.resting)
        phases = {s.phase for s in self.manager.state.standings.values()} - {PriorityPhase.STEADY}
        return CALM_S if not phases else START_S if phases == {PriorityPhase.RESUMING} else BUSY_S

    def _run(self) -> None:
        wait_s = BUSY_S
        while not self._closed.is_set():
            try:
                wait_s = self.turn()
                self._warnings.over("turn")
            except Exception as error:  # noqa: BLE001  # a topology must not stay paused, whatever failed
                # The application may be ending, or a disk be full: it is tried again, and ``problems`` has the error.
                self.problems.append(str(error))
                self._warnings.warn(
                    "turn",
                    f"a change of priorities could not go on: {type(error).__name__}: {error}; it is tried again",
                )
                wait_s = AGAIN_S
            self._wake.wait(wait_s)
            self._wake.clear()

    def _know(self) -> None:
        """Add topologies that run, and drop those gone for FORGET_S, which is longer than a restart of a query."""
        with self._lock:  # called by its own thread and by verbs
            now_s = self._clock()
            names = [*self._engine.running, *(q.topology for q in self._supervisor.queries if q.isActive)]
            levels = {name: self._engine.options_of(name).level for name in names}
            self._seen_s |= dict.fromkeys(levels, now_s)
            known = self.manager.levels()
            kept = {name: level for name, level in known.items() if now_s - self._seen_s.get(name, now_s) < FORGET_S}
            wanted = levels | kept
            if wanted.keys() != known.keys():
                self.manager.know(wanted)
                self._engine.set_levels(self.manager.levels())

    def _pull_triggers(self) -> None:
        if not any(wishes.triggers.rate is not None for wishes in self._wishes.values()):
            return
        if self._clock() - self._sampled_s < SAMPLE_S:
            return
        self._sampled_s, now = self._clock(), self._engine.observe(OBSERVER)
        for name, wishes in list(self._wishes.items()):
            rate = load_rows_s(now, name) if now.runs(name) else None
            if rate is None:
                continue
            wish = wishes.rate_seen(now.at_s, rate, self.manager.state.of(name).on)
            if wish is not None:
                self.manager.trigger(name, wish, wishes.triggers.level, f"its rate of {rate:.0f} rows/s")


def _claimed(supervisor: Supervisor) -> tuple[Path, IO[bytes]]:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", supervisor.app or "application")
    path, lock = claim(supervisor.folder(), name)
    if path.stem != f"priorities-{name}":
        log.warning(
            "another driver is called %r too; this one keeps its priorities in %s: give each application a name of its "
            "own, so that each finds its priorities again",
            supervisor.app, path,
        )  # fmt: skip
    return path, lock


_served: dict[int, PriorityService] = {}


def serve(supervisor: Supervisor) -> Endpoint:
    """Open a driver's endpoint with priorities, which end with the supervisor."""
    priorities = _served[id(supervisor)] = PriorityService(supervisor)
    supervisor.on_close(priorities.close)
    supervisor.on_close(lambda: _served.pop(id(supervisor), None))
    return supervisor.serve(priorities.verbs)


def priorities_of(supervisor: Supervisor) -> PriorityService:
    """The service that ``serve`` opened."""
    return _served[id(supervisor)]
