"""What Chakraborty's evaluation measures, of a run: T_E, T_T and O. Times are in seconds.

T_E, the complex event inference latency: two raw events, found in the same batch by two topologies, make a complex
event; it is known when the later of the two is. Mean over the batches that are events, under every policy alike.

T_T, the tuple processing latency, by priority level: for loads in batches a batch's time divided by the rows that one
producer sends in it, mean over the batches and then over the topologies of the level. For other loads the mean complete
time of a row from when it fell due: the thesis words it as the time of the whole run divided by its rows, but the
figures it prints (46.8 s for a run of 80,000 rows) can only be that mean.

O, the overhead of a change of level: from the trigger until the topology reads again under the plan made for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from barograph.engines.sim.world.layout import Floats

if TYPE_CHECKING:
    from barograph.engines.sim.engine import Simulator


@dataclass(frozen=True, slots=True)
class Overhead:
    """One change of level. drain_s: the part of O until the rows in flight had ended."""

    topology: str
    at_s: float
    drain_s: float
    overhead_s: float


@dataclass(frozen=True, slots=True)
class PriorityResult:
    """event_latency_s: T_E, None where no batch is an event. row_time_s: T_T by level. overheads: O, in order of time.

    event_latencies_s: of each complex event, in order.
    """

    event_latency_s: float | None
    event_latencies_s: tuple[float, ...]
    row_time_s: Mapping[int, float]
    overheads: tuple[Overhead, ...]

    @property
    def overhead_mean_s(self) -> float:
        """0 where nothing changed, as under static priorities."""
        return sum(o.overhead_s for o in self.overheads) / len(self.overheads) if self.overheads else 0.0


def priority_result(engine: "Simulator", complete_s: Mapping[str, float]) -> PriorityResult | None:
    """complete_s: the mean complete time of each topology. None for a scenario in which no topology has a trigger."""
    workloads = engine.scenario.workloads
    if not any(w.trigger for w in workloads):
        return None
    events = _event_latencies(engine)
    by_level: dict[int, list[float]] = {}
    for t, workload in enumerate(workloads):
        level = workload.topology.level if workload.trigger is None else workload.trigger.level
        name = workload.topology.name
        by_level.setdefault(level, []).append(_batch_row_time_s(engine, t, complete_s[name]))
    names = [w.topology.name for w in workloads]
    return PriorityResult(
        round(float(events.mean()), 3) if events.size else None,
        tuple(np.round(events, 3).tolist()),
        {level: round(sum(times) / len(times), 4) for level, times in sorted(by_level.items())},
        tuple(
            Overhead(names[p.topology], round(p.asked_s, 3), round(p.drain_s, 3), round(p.overhead_s, 3))
            for p in sorted(engine.priorities.triggers.passed, key=lambda p: (p.asked_s, p.topology))
        ),
    )


def _event_latencies(engine: "Simulator") -> Floats:
    """Of each batch that is an event in every topology that looks for one: the later of their latencies."""
    looking = [
        (batches.times_s(engine.now_s), workload.trigger.events)
        for batches, workload in zip(engine.batches, engine.scenario.workloads, strict=True)
        if batches is not None and workload.trigger is not None and workload.trigger.events is not None
    ]
    if not looking:
        return np.empty(0)
    first = max(events[0] for _, events in looking)
    end = min(min(events[1], times.size) for times, events in looking)
    found: Floats = np.stack([times[first : max(first, end)] for times, _ in looking]).max(axis=0)
    return found


def _batch_row_time_s(engine: "Simulator", t: int, otherwise_s: float) -> float:
    batches, workload = engine.batches[t], engine.scenario.workloads[t]
    if batches is None:
        return otherwise_s
    times = batches.times_s(engine.now_s)
    return float(times.mean()) / (batches.rows / workload.producers) if times.size else 0.0
