"""Ends epochs that have become longer than the recovery target allows, where no controller sets their length.

The supervisor measures each query every few seconds and computes the longest epoch by ``epoch_length``, as a controller
does. It only ends epochs early: an epoch that its trigger ends sooner is left alone. A controller's lengths apply while
it is there; when it is gone, both do. Executors end epochs by the time of day. If that is set back, an epoch would last
for as much longer, so one that has outlasted its controller's length by far is ended here too.

A driver that starts a query on a used checkpoint does not know what the last one had read of the open epoch. So that
something is committed however soon it dies too, an epoch lasts there no longer than the query had been up before it.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from barograph.config import default
from barograph.engines.epoch_length import Recovery, epoch_length
from barograph.engines.spark.bridge.telemetry import EpochSeen
from barograph.model import Snapshot

log = logging.getLogger(__name__)

OBSERVER = "supervisor"
MEASURE_S = 10.0  # short enough to follow a load, long enough that looking costs nothing that can be measured
OVERDUE, LATE_S = 1.5, 5.0  # an epoch is overdue after so many times its length and so much more: ending one takes time
FIRST_S = 1.0  # of the first epoch on a used checkpoint, from when it is up


class BoundedEpochs(Protocol):
    """What an engine offers for it."""

    def observe(self, observer: str) -> Snapshot: ...

    def present(self, topology: str) -> EpochSeen | None: ...

    def end_epoch(self, topology: str) -> None: ...

    def lives(self) -> bool: ...


class EpochBounds:
    """Of one driver. paced: the lengths of epochs that a controller sets now, in seconds by topology. frozen: whether
    nothing may be changed. stale_s: older figures change no bound; None: none are too old."""

    def __init__(
        self,
        engine: BoundedEpochs,
        paced: Callable[[], Mapping[str, float]] = dict,
        frozen: Callable[[], bool] = lambda: False,
        now: Callable[[], float] = time.monotonic,
        stale_s: float | None = default("guards.stale"),
    ) -> None:
        self._engine, self._paced, self._frozen, self._now = engine, paced, frozen, now
        self._stale_s = stale_s
        self._recovery: dict[str, Recovery] = {}
        self._most_s: dict[str, float] = {}
        self._up_s: dict[str, float | None] = {}  # on a used checkpoint: since when it is up; None: not yet
        self._since_s: dict[
            str, tuple[tuple[str, int], float]
        ] = {}  # topology -> its epoch, and when it was first seen
        self._measured: tuple[float, dict[str, str]] | None = (
            None  # when, and the run of each topology that was up then
        )

    def bound(self, topology: str, recovery: Recovery | None, on_used: bool = False) -> None:
        """From now on its epochs are bounded so that it recovers in time; None: they are not. on_used: whether a query
        was started on its checkpoint before."""
        self._most_s.pop(topology, None)
        self._up_s.pop(topology, None)
        if recovery is None:
            self._recovery.pop(topology, None)
        else:
            self._recovery[topology] = recovery
            if on_used:
                self._up_s[topology] = None

    @property
    def most_s(self) -> dict[str, float]:
        """Topology -> the longest epoch that it may have; a topology that was not measured yet is missing."""
        return dict(self._most_s)

    def lives(self) -> bool:
        return self._engine.lives()

    def keep_up(self) -> None:
        """Measure if it is time, and end the epochs that last too long. The supervisor calls it once a second."""
        paced = self._paced()
        bounded = {name: recovery for name, recovery in list(self._recovery.items()) if name not in paced}
        if bounded:
            self._measure(bounded)
        else:
            self._measured = None
        most_s = {name: self._most_s.get(name, _unmeasured_s(recovery)) for name, recovery in bounded.items()}
        most_s |= {name: OVERDUE * length_s + LATE_S for name, length_s in paced.items()}
        for name in most_s:
            epoch = self._engine.present(name)
            if epoch is None:
                self._since_s.pop(name, None)
                continue
            if epoch.is_up and self._up_s.get(name, 0.0) is None:
                self._up_s[name] = self._now()
            if (known := self._since_s.get(name)) is None or known[0] != (epoch.run, epoch.epoch):
                self._since_s[name] = ((epoch.run, epoch.epoch), self._now())
            elif self._is_due(name, known[1], most_s[name]) and not self._frozen():
                # It may take a while to end; a cut that is repeated changes nothing.
                self._engine.end_epoch(name)

    def _is_due(self, topology: str, since_s: float, most_s: float) -> bool:
        """Whether its epoch, which was first seen then, has lasted long enough."""
        now_s, up_s = self._now(), self._up_s.get(topology)
        if now_s - since_s >= most_s:
            return True
        return up_s is not None and now_s - max(since_s, up_s) >= max(FIRST_S, since_s - up_s)

    def _measure(self, topologies: Collection[str]) -> None:
        if self._measured is not None and self._now() - self._measured[0] < MEASURE_S:
            return
        now = self._engine.observe(OBSERVER)
        present = {name: self._engine.present(name) for name in topologies}
        ages_s = {m.topology: m.age_s for m in now.topology_metrics}
        # An executor that is silent looks like one without load, and in its next report it has the load of more time.
        fresh = {name for name in topologies if self._stale_s is None or ages_s.get(name, 0.0) <= self._stale_s}
        up = {n: epoch.run for n, epoch in present.items() if epoch is not None and epoch.is_up and n in fresh}
        # A cycle in which it was started says little about what it can process.
        steady = {} if self._measured is None else self._measured[1]
        for name in topologies:
            recovery = self._recovery.get(name)
            known = any(topology.name == name for topology in now.topologies)
            if recovery is not None and known and name in up and steady.get(name) == up[name]:
                found = epoch_length(now, name, recovery, self._most_s.get(name))
                if found.seconds != self._most_s.get(name):
                    log.info("epochs of %s last at most %.3g s: %s", name, found.seconds, found.reason.why)
                self._most_s[name] = found.seconds
        self._measured = (self._now(), up)


def _unmeasured_s(recovery: Recovery) -> float:
    """The longest epoch before anything was measured: what is read in so much time is replayed in less, where there is
    any room."""
    return min(recovery.most_s, max(recovery.least_s, recovery.recovery_s))
