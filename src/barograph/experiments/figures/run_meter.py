"""Figures of a run while its load lasted: CPU reserved, limit and used, nodes, workers, traffic, operators over time.

It sums up observations in order of time: the cycles of the history for a steered run, one observation a second for
others. Both are counted in the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barograph.engines.reduced import applied_part
from barograph.engines.sim.result import OperatorSeries, TrafficResult
from barograph.experiments.figures.cpu_in_force import CpuInForce, in_all, of_operator
from barograph.experiments.figures.crossing import Crossed, crossed
from barograph.model import Cycle, Forecast, MigrationMode, Placement, Snapshot


@dataclass(frozen=True, slots=True)
class Look:
    """One observation of a run. at_s: since the load's start; the metrics of ``now`` are of the cycle that ends there.

    placement, held: in force from then on. forecast: made at that time; None where the policy makes none.
    """

    at_s: float
    now: Snapshot
    placement: Placement
    held: CpuInForce = field(default_factory=CpuInForce)
    forecast: Forecast | None = None


@dataclass(frozen=True, slots=True)
class Metered:
    """None is unknown. traffic: None also where no row between instances was seen. operators: by ``topology/operator``;
    their predictions are empty where the policy makes no forecasts."""

    reserved_core_s: float | None
    limit_core_s: float | None
    used_core_s: float | None
    nodes_mean: float | None
    nodes_max: int | None
    workers_mean: float | None
    workers_max: int | None
    traffic: TrafficResult | None = None
    operators: Mapping[str, OperatorSeries] = field(default_factory=dict)


UNKNOWN = Metered(None, None, None, None, None, None, None)


class RunMeter:
    """Of a run whose load lasts from 0 to ``seconds``. Observations come in order of time."""

    def __init__(self, seconds: float, begun: CpuInForce | None = None) -> None:
        """begun: what is in force before the first observation; None: the same as after it."""
        self._seconds, self._begun = seconds, begun
        self._reserved_core_s = self._limit_core_s = self._used_core_s = 0.0
        self._node_s = self._worker_s = self._held_s = self._seen_s = 0.0
        self._nodes_max = self._workers_max = 0
        self._crossed = Crossed()
        self._operators: dict[str, OperatorSeries] = {}
        self._last: Look | None = None

    def take(self, look: Look) -> None:
        if self._last is None:  # the first observation stands for the time before it
            first = Look(0.0, look.now, look.now.placement, look.held if self._begun is None else self._begun)
            self._settle(first, 0.0, look.at_s)
        else:
            self._settle(self._last, self._last.at_s, look.at_s)
        self._last = look
        within_s = _overlap(look.at_s - look.now.cycle_s, look.at_s, self._seconds)
        if within_s > 0:
            part = within_s / look.now.cycle_s
            self._seen_s += within_s
            self._used_core_s += part * float(look.now.metrics.columns["cpu_s"].sum())
            self._crossed += crossed(look.now).times(part)
            self._write(look)

    def told(self) -> Metered:
        """Until the load's end; unknown where there was no observation."""
        if self._last is None:
            return UNKNOWN
        self._settle(self._last, self._last.at_s, self._seconds)
        self._last = Look(self._seconds, self._last.now, self._last.placement, self._last.held)
        held_s = max(self._held_s, 1e-9)
        return Metered(
            self._reserved_core_s, self._limit_core_s, self._used_core_s, self._node_s / held_s, self._nodes_max,
            self._worker_s / held_s, self._workers_max, self._traffic(), self._operators,
        )  # fmt: skip

    def _settle(self, look: Look, since_s: float, until_s: float) -> None:
        seconds = _overlap(since_s, until_s, self._seconds)
        if seconds <= 0:
            return
        cpu = in_all(look.now, look.placement, look.held)
        slots = set(look.placement.slots.values())
        nodes = {slot.node for slot in slots}
        self._held_s += seconds
        self._reserved_core_s += seconds * cpu.reserved_pct / 100.0
        self._limit_core_s += seconds * cpu.limit_pct / 100.0
        self._node_s += seconds * len(nodes)
        self._worker_s += seconds * len(slots)
        self._nodes_max = max(self._nodes_max, len(nodes))
        self._workers_max = max(self._workers_max, len(slots))

    def _traffic(self) -> TrafficResult | None:
        found = self._crossed
        if found.sent <= 0:
            return None
        return TrafficResult(
            round(found.between_nodes / self._seen_s, 3),
            round(found.between_workers / self._seen_s, 3),
            round(found.between_nodes / found.sent, 4),
            round(found.between_workers / found.sent, 4),
        )

    def _write(self, look: Look) -> None:
        now = look.now
        for topology in now.topologies:
            for operator in topology.operators:
                mine = self._operators.setdefault(f"{topology.name}/{operator.name}", OperatorSeries())
                seen = now.metrics.of_operator(topology.name, operator.name)
                if look.forecast is not None:
                    expected = look.forecast.of(topology.name, operator.name)
                    mine.predicted_rows_per_s.append(round((expected.arrived if expected else 0.0) / now.cycle_s, 2))
                cpu = of_operator(now, look.placement, look.held, topology.name, operator.name)
                mine.at_s.append(round(look.at_s, 2))
                mine.instances.append(operator.parallelism)
                mine.arrived_rows_per_s.append(round(seen.arrived / now.cycle_s, 2))
                mine.reserved_pct.append(round(cpu.reserved_pct, 2))
                mine.limit_pct.append(round(cpu.limit_pct, 2) if cpu.limited else None)
                mine.used_pct.append(round(100.0 * seen.cpu_s / now.cycle_s, 2))


def looks(cycles: Sequence[tuple[float, Cycle]], begun: CpuInForce) -> list[Look]:
    """The cycles of a steered run, each with the second at which its plan had been carried out."""
    found, held = [], begun
    for at_s, cycle in cycles:
        held = held.after(cycle)
        placement = cycle.snapshot.placement
        waits = cycle.plan.mode is MigrationMode.BOUNDARY  # for the end of the epoch; later observations will show it
        if cycle.outcome is not None and cycle.outcome.ok and not waits:
            moved = {i: s for i, s in applied_part(cycle).placement.slots.items() if i in placement}
            placement = Placement({**placement.slots, **moved})
        found.append(Look(at_s, cycle.snapshot, placement, held, cycle.forecast))
    return found


def metered(cycles: Sequence[tuple[float, Cycle]], seconds: float, begun: CpuInForce | None = None) -> Metered:
    """Of a steered run."""
    meter = RunMeter(seconds, begun)
    for look in looks(cycles, begun or CpuInForce()):
        meter.take(look)
    return meter.told()


def _overlap(since_s: float, until_s: float, seconds: float) -> float:
    return max(0.0, min(until_s, seconds) - max(since_s, 0.0))
