"""Which triggers turn on and off, and how long each change of level takes (Chakraborty's priority manager, simulated).

A trigger follows the load or the raw events that its topology finds. What the change costs is decided by the engine:
the topology drains, gets its new level and a new plan, and goes on. O is the time from the trigger until then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from barograph.engines.sim.grains.batches import BatchProgress
from barograph.engines.sim.scenario.definition import SimulatedTopology, Trigger
from barograph.model.loads.schedule import Segment


def above_for(load: Sequence[Segment], rows_s: float, seconds: float) -> list[tuple[float, bool]]:
    """When a trigger turns on, after the load was above a rate for some seconds, and off, when it falls below."""
    spans: list[list[float]] = []
    for start_s, end_s in (span for segment in load if (span := _above(segment, rows_s)) is not None):
        if spans and spans[-1][1] >= start_s:
            spans[-1][1] = end_s
        else:
            spans.append([start_s, end_s])
    long = [(start_s, end_s) for start_s, end_s in spans if end_s - start_s > seconds]
    return [turn for start_s, end_s in long for turn in ((start_s + seconds, True), (end_s, False))]


def _above(segment: Segment, rows_s: float) -> tuple[float, float] | None:
    """The part of a segment in which its rate is above the threshold."""
    start, end = segment.rate_start > rows_s, segment.rate_end > rows_s
    if not start and not end:
        return None
    if start and end:
        return segment.start_s, segment.end_s
    crossing_s = segment.start_s + (rows_s - segment.rate_start) / segment.slope
    return (segment.start_s, crossing_s) if start else (crossing_s, segment.end_s)


@dataclass(frozen=True, slots=True)
class Passed:
    """A change of level. drain_s: until no row was in flight; overhead_s: O, until it read again."""

    topology: int
    asked_s: float
    drain_s: float
    overhead_s: float


class Triggers:
    """Those of all topologies, by their number. passed: what each change of level took, in order of their ends."""

    def __init__(self, workloads: Sequence[SimulatedTopology], batches: Sequence[BatchProgress | None]) -> None:
        self._known = sorted(
            ((c.at_s, t, c.level) for t, w in enumerate(workloads) if w.trigger for c in w.trigger.changes),
            key=lambda x: x[0],
        )
        self._watched = [
            _RawEvents(t, w.trigger, mine)
            for t, (w, mine) in enumerate(zip(workloads, batches, strict=True))
            if w.trigger is not None and w.trigger.events is not None and mine is not None
        ]
        self._asked_s: dict[int, float] = {}
        self._drained_s: dict[int, float] = {}
        self.passed: list[Passed] = []

    def next_s(self) -> float | None:
        """The next moment at which something is known to turn."""
        return self._known[0][0] if self._known else None

    def turned(self, now_s: float) -> Iterator[tuple[int, int]]:
        """(topology, level) of each that turns now."""
        while self._known and self._known[0][0] <= now_s + 1e-9:
            _, t, level = self._known.pop(0)
            yield t, level
        for watch in self._watched:
            if (wanted := watch.turned()) is not None:
                yield watch.topology, wanted

    def asked(self, t: int, now_s: float) -> None:
        """A change of level is asked for; one that is asked for while another is under way is part of it."""
        self._asked_s.setdefault(t, now_s)

    def drained(self, t: int, now_s: float) -> None:
        self._drained_s[t] = now_s

    def resumed(self, t: int, now_s: float) -> None:
        asked_s, drained_s = self._asked_s.pop(t, None), self._drained_s.pop(t, now_s)
        if asked_s is not None:
            self.passed.append(Passed(t, asked_s, drained_s - asked_s, now_s - asked_s))


class _RawEvents:
    """Of one topology: batch after batch, whether it is a raw event."""

    def __init__(self, topology: int, trigger: Trigger, batches: BatchProgress) -> None:
        self.topology, self._trigger, self._batches = topology, trigger, batches
        self._number = 0
        self._on = False

    def turned(self) -> int | None:
        """The level it asks for, where the batches it has seen since the last call change that."""
        before, trigger = self._on, self._trigger
        first, end = trigger.events or (0, 0)
        while self._number < self._batches.count and self._batches.seen(self._number) >= trigger.share - 1e-9:
            self._on = first <= self._number < end
            self._number += 1
        if self._on == before:
            return None
        return trigger.level if self._on else trigger.calm
