"""Preventive parallelism (Kombi et al., AUTOSCALE): instances by local and global activity, one decision per sample.

Each operator's estimates are in ``estimates.py``. Where a parent is critical by itself, the outputs of the parents are
combined with the operator's own estimate; the activity that follows, and whether the load rises, decide the degree.
CPU is declared by the user and not enforced. After a change the topology does not change for one window, so that no
decision uses a window that contains the change. Windows are in seconds, whatever the lengths of the cycles in them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from barograph.model import Cycle, Demand, Forecast, Frame, Operator, OperatorDemand, Reason, ReasonCode, Snapshot
from barograph.model.frame import LOOKBACK_CYCLES
from barograph.scale.activity import Activity, Thresholds, new_degree
from barograph.scale.estimates import Estimates, feeding, own, with_backlog
from barograph.scale.measured import all_declared, assumed_pct
from barograph.scale.protocol import bounded
from barograph.scale.rest import since_change_s

_Held = tuple[ReasonCode, str]  # why an operator does not change


class Combine(StrEnum):
    """How a child's own estimate and its parents' output become one."""

    MAX = "max"
    MIN = "min"


@dataclass(frozen=True)
class Parallelism:
    """window_s: longer than the largest stateful window. combine: max or min of own estimate and parents' output.

    drift_windows: iterations behind eps; drift_bound: its bound, as a part of the capacity. scale_sources: AUTOSCALE
    does not scale sources. follow_new_degree, aim_at_theta_max: not in the paper: a parent's output is computed with
    the degree it is about to have (its children grow one window sooner), and operators are sized for theta_max.
    """

    window_s: float = 60.0
    theta_min: float = 0.3
    theta_max: float = 0.8
    combine: Combine = Combine.MAX
    drift_windows: int = 4
    drift_bound: float = 0.2
    scale_sources: bool = False
    follow_new_degree: bool = False
    aim_at_theta_max: bool = False

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:
        recent = sum(1 for c in history if now.at_s - c.snapshot.at_s < 2 * self.window_s)
        frame = Frame.of(history, now, max(LOOKBACK_CYCLES, recent + 1))
        parents = feeding(frame, self.window_s)
        local = with_backlog(own(frame, forecast, self.window_s, self.drift_windows, self.drift_bound), parents)
        resting = {t.name: self._resting(history, now, frame, t.name) for t in now.topologies}
        estimates: dict[int, Estimates] = {}
        degrees: dict[int, int] = {}
        found: dict[tuple[str, str], OperatorDemand] = {}
        for i, (topology_name, operator_name) in enumerate(frame.keys):
            operator = now.topology(topology_name).operator(operator_name)
            e = estimates[i] = self._combined(i, local, estimates, degrees, parents.get(i, ()))
            held_still = resting[topology_name]
            if held_still is None and frame.sources[i] and not self.scale_sources:
                held_still = ReasonCode.SOURCE_NOT_SCALED, "sources are not scaled"
            wanted = self._degree(now, operator, e)
            degrees[i] = operator.parallelism if held_still is not None else wanted
            shares = assumed_pct(history, now, topology_name, operator, degrees[i], frame.window(self.window_s))
            why = self._why(f"{topology_name}/{operator_name}", local[i], e, degrees[i], held_still)
            found[topology_name, operator_name] = OperatorDemand(
                topology_name, operator_name, degrees[i], shares, shares, wanted, why
            )
        order = [(t.name, o.name) for t in now.topologies for o in t.operators]
        return Demand(tuple(found[key] for key in order), enforced=False, reserved=all_declared(now))

    def _resting(self, history: Sequence[Cycle], now: Snapshot, frame: Frame, topology: str) -> _Held | None:
        """Why no decision is made for the topology now; None if one may be made."""
        measured_s = frame.measured_s(topology, self.window_s)
        if measured_s < self.window_s:
            why = f"{measured_s:.3g} of the {self.window_s:g} s of a window have been measured"
            return ReasonCode.WINDOW_NOT_FULL, why
        if since_change_s(history, now, topology, self.window_s) >= self.window_s:
            return None
        return ReasonCode.RESTING, "grace period of one window after a change"

    def _combined(
        self,
        i: int,
        local: Sequence[Estimates],
        estimates: Mapping[int, Estimates],
        degrees: Mapping[int, int],
        parents: Sequence[tuple[int, float]],
    ) -> Estimates:
        """Combined with the parents' output if one of them is critical by itself; its children use the result."""
        thresholds = Thresholds(self.theta_min, self.theta_max)
        if not any(thresholds.activity(local[p].level) is Activity.CRITICAL for p, _ in parents):
            return local[i]
        after = degrees if self.follow_new_degree else {p: local[p].degree for p, _ in parents}
        output = sum(estimates[p].output_rows(after[p]) * part for p, part in parents)
        pick = max if self.combine is Combine.MAX else min
        return replace(local[i], input_rows=pick(local[i].input_rows, output))

    def _degree(self, now: Snapshot, operator: Operator, e: Estimates) -> int:
        if e.capacity_rows <= 0:
            return operator.parallelism
        degree = new_degree(
            operator.parallelism,
            e.level,
            e.rising,
            operator.min_parallelism,
            operator.max_parallelism,
            Thresholds(self.theta_min, self.theta_max),
            self.aim_at_theta_max,
        )
        return bounded(now, operator, degree)

    def _why(self, about: str, local: Estimates, e: Estimates, degree: int, held_still: _Held | None) -> Reason:
        if held_still is not None:
            code, why = held_still
        elif e.capacity_rows <= 0:
            code, why = ReasonCode.RATE_UNKNOWN, "its capacity is not known yet"
        else:
            activity = Thresholds(self.theta_min, self.theta_max).activity(e.level)
            why = f"activity is {activity}, load is {'rising' if e.rising else 'not rising'}"
            more = ReasonCode.MORE_INSTANCES if degree > e.degree else ReasonCode.FEWER_INSTANCES
            code = ReasonCode.INSTANCES_SUFFICE if degree == e.degree else more
        return Reason(
            about,
            code,
            why,
            {
                "lal": local.level,
                "gal": e.level,
                "input_rows": e.input_rows,
                "capacity_rows": e.capacity_rows,
                "drift_rows": e.drift_rows,
                "degree_before": float(e.degree),
                "degree": float(degree),
            },
        )
