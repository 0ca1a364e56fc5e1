"""The desk of a driver at work: it turns by itself, knows the topologies that run, and answers ``barograph priority``.

What it decides is the machine's business, what it does the taps'. It must never leave a topology paused for good, so
nothing that goes wrong in one turn ends its thread.
"""

import re
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from barograph.engines.spark.endpoint import Endpoint, Verb
from barograph.engines.spark.supervisor import Supervisor
from barograph.engines.spark.taps import SparkTaps
from barograph.guards.acts import load_rows_s
from barograph.model import BadInput, Snapshot
from barograph.priority.desk import Desk, Taps
from barograph.priority.machine import Limits, Phase
from barograph.priority.triggers import RateTrigger

BUSY_S, CALM_S = 0.02, 0.25  # between two turns: while a change is under way, and while none is
START_S = 0.06  # and while only instances start: to look costs CPU that they need
FORGET_S = 60.0  # a topology that does not run is forgotten after this time
SAMPLES = 120


class Priorities:
    """One for a driver. path: where priorities are kept; None: in the driver's folder, by its application's name."""

    def __init__(
        self,
        supervisor: Supervisor,
        path: Path | None = None,
        limits: Limits | None = None,
        taps: Taps | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._supervisor, self._engine, self._clock = supervisor, supervisor.engine, clock
        self.desk = Desk(path or path_of(supervisor), taps or SparkTaps(supervisor), limits)
        self._seen_s = dict.fromkeys(self.desk.levels(), clock())
        self._triggers: dict[str, RateTrigger] = {}
        self._samples: dict[str, deque[tuple[float, float]]] = {}
        self._sampled: Snapshot | None = None
        self._lock = threading.Lock()
        self.problems: deque[str] = deque(maxlen=20)
        self._wake, self._closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="priorities", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Priorities":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Turn no more. What is under way is gone on with by whoever opens the same file."""
        self._closed.set()
        self._wake.set()
        self._thread.join()

    @property
    def verbs(self) -> dict[str, Verb]:
        return {"priority": self.verb}

    def verb(self, body: Any) -> Any:
        """What ``barograph priority`` asks."""
        self._engine.refresh()
        self._know()
        try:
            return self.desk.verb(body)
        finally:
            self._wake.set()

    def trigger(self, topology: str, on: bool, level: int = 1) -> None:
        """A call from the user's own code."""
        self._engine.refresh()
        self._know()
        self.desk.trigger(topology, on, level)
        self._wake.set()

    def watch(self, topology: str, trigger: RateTrigger) -> None:
        """Turn the topology's trigger on and off by the rate at which its rows fall due."""
        self._triggers[topology] = trigger
        self._samples[topology] = deque(maxlen=SAMPLES)

    def turn(self) -> float:
        """One look; after how many seconds the next is due."""
        self._know()
        self._pull_triggers()
        self.desk.turn(starved=self._engine.gates.resting)
        phases = {s.phase for s in self.desk.state.standings.values()} - {Phase.STEADY}
        return CALM_S if not phases else START_S if phases == {Phase.RESUMING} else BUSY_S

    def _run(self) -> None:
        wait_s = BUSY_S
        while not self._closed.is_set():
            try:
                wait_s = self.turn()
            except (Py4JError, OSError, BadInput, RuntimeError) as error:
                # The application may be ending, or a disk be full: it is tried again, and whoever looks is told.
                self.problems.append(str(error))
                wait_s = CALM_S
            self._wake.wait(wait_s)
            self._wake.clear()

    def _know(self) -> None:
        """Who runs now is known; who has been gone for long is forgotten. One between two lives is not gone."""
        with self._lock:  # by its own thread, and by whoever asks
            now_s = self._clock()
            names = [*self._engine.sight.topologies, *(q.topology for q in self._supervisor.queries if q.isActive)]
            levels = {name: self._engine.asked(name).level for name in names}
            self._seen_s |= dict.fromkeys(levels, now_s)
            known = self.desk.levels()
            kept = {name: level for name, level in known.items() if now_s - self._seen_s.get(name, now_s) < FORGET_S}
            wanted = levels | kept
            if wanted.keys() != known.keys():
                self.desk.know(wanted)
                self._engine.set_levels(self.desk.levels())

    def _pull_triggers(self) -> None:
        if not self._triggers:
            return
        now = self._engine.last
        if now is None or self._engine.age_s(now) > 5.0:  # no controller looks
            now = self._engine.observe()
        if now is self._sampled:
            return
        self._sampled = now
        for name, trigger in self._triggers.items():
            rate = load_rows_s(now, name) if any(t.name == name for t in now.topologies) else None
            if rate is None:
                continue
            samples = self._samples[name]
            if samples and samples[-1][0] >= now.at_s:
                samples.clear()
            samples.append((now.at_s, rate))
            on = self.desk.state.of(name).on
            wish = trigger.wish(tuple(samples), on)
            if wish != on:
                self.desk.trigger(name, wish, by=f"its rate of {rate:.0f} rows/s")


def path_of(supervisor: Supervisor) -> Path:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", supervisor.app or "application")
    return supervisor.folder() / f"priorities-{name}.json"


_served: dict[int, Priorities] = {}


def serve(supervisor: Supervisor) -> Endpoint:
    """Open a driver's endpoint with priorities, which end with the supervisor."""
    priorities = _served[id(supervisor)] = Priorities(supervisor)
    supervisor.on_close(priorities.close)
    supervisor.on_close(lambda: _served.pop(id(supervisor), None))
    return supervisor.serve(priorities.verbs)


def priorities_of(supervisor: Supervisor) -> Priorities:
    """Those that were opened with ``serve``."""
    return _served[id(supervisor)]
