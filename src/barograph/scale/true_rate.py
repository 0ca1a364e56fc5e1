"""True-rate sizing: instances computed from the rate that one instance would reach if it never waited.

True rate of an instance = executed / busy_s. Target rate of an operator = expected arrivals a second + backlog / the
time in which to catch up, and at least what its parents will send at their own target. Wanted instances =
ceil(target / (true rate * target utilisation)). Nothing changes while the present load is within a band around the
target utilisation, nor for one window after a change, and nothing shrinks before a whole window was measured. CPU is
not enforced.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barograph.model import (
    Cycle,
    Demand,
    Forecast,
    Frame,
    Operator,
    OperatorDemand,
    Reason,
    ReasonCode,
    Snapshot,
    ratio_of_sums,
)
from barograph.model.frame import NOTHING
from barograph.scale.measured import all_declared, assumed_pct
from barograph.scale.protocol import bounded, ceil
from barograph.scale.rest import since_change_s


@dataclass(frozen=True)
class TrueRate:
    """target_utilisation: the target for the busy part of an instance. boundary: half the width of the band around it.

    catch_up_s: time in which a backlog is to be cleared. window_s: over how long rates are averaged, and how long a
    topology does not change after a change. shrink_at_most: the largest part of its instances an operator loses at
    once.
    """

    target_utilisation: float = 0.7
    boundary: float = 0.3
    catch_up_s: float = 60.0
    window_s: float = 60.0
    shrink_at_most: float = 0.5

    def __call__(self, history: Sequence[Cycle], now: Snapshot, forecast: Forecast) -> Demand:
        frame = Frame.of(history, now)
        window = frame.window(self.window_s)
        true_rate = ratio_of_sums(frame.column("executed"), frame.column("busy_s"), window)
        parents = frame.column("executed")[:, [link.parent for link in frame.links]]
        passed = np.nan_to_num(ratio_of_sums(frame.sent, parents, window)) if frame.links else np.zeros(0)
        feeding: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for link, ratio in zip(frame.links, passed.tolist(), strict=True):
            feeding[link.child].append((link.parent, ratio))
        resting = {t.name: since_change_s(history, now, t.name, self.window_s) < self.window_s for t in now.topologies}
        whole_window = {t.name: frame.measured_s(t.name, self.window_s) >= self.window_s for t in now.topologies}
        target: list[float] = []
        found: dict[tuple[str, str], OperatorDemand] = {}
        for i, (topology, name) in enumerate(frame.keys):
            expected = forecast.of(topology, name)
            arriving = (expected.arrived if expected else 0.0) / now.cycle_s
            sent = sum(target[p] * ratio for p, ratio in feeding[i])
            backlog = max(0.0, float(frame.column("pending")[-1, i]))
            target.append(max(arriving, sent) + backlog / self.catch_up_s)
            operator = now.topology(topology).operator(name)
            found[topology, name] = self._demand(
                history,
                now,
                topology,
                operator,
                target[i],
                float(true_rate[i]),
                resting[topology],
                whole_window[topology],
            )
        order = [found[t.name, o.name] for t in now.topologies for o in t.operators]
        return Demand(tuple(order), enforced=False, reserved=all_declared(now))

    def _demand(
        self,
        history: Sequence[Cycle],
        now: Snapshot,
        topology: str,
        operator: Operator,
        target: float,
        rate: float,
        resting: bool,
        whole_window: bool,
    ) -> OperatorDemand:
        present, wanted = operator.parallelism, operator.parallelism
        known = np.isfinite(rate) and rate > NOTHING
        load = target / (rate * present) if known else 0.0
        if known:
            wanted = max(1, ceil(target / (rate * self.target_utilisation)))
        above = load > min(1.0, self.target_utilisation + self.boundary)
        below = load < self.target_utilisation - self.boundary
        degree = present
        if not resting and above:
            degree = max(present, bounded(now, operator, wanted))
        elif not resting and below and whole_window:
            degree = min(present, bounded(now, operator, max(wanted, ceil(present * (1 - self.shrink_at_most)))))
        code, why = ReasonCode.INSTANCES_SUFFICE, "load is within its band"
        if not known:
            code, why = ReasonCode.RATE_UNKNOWN, "its true rate is not known yet"
        elif resting:
            code, why = ReasonCode.RESTING, "resting after a change"
        elif above:
            code, why = ReasonCode.MORE_INSTANCES, "load is above its band"
        elif below:
            code = ReasonCode.FEWER_INSTANCES if whole_window else ReasonCode.WINDOW_NOT_FULL
            why = "load is below its band"
        numbers = {
            "target_rows_per_s": target,
            "true_rows_per_s": rate if known else 0.0,
            "load": load,
            "wanted": float(wanted),
        }
        shares = assumed_pct(history, now, topology, operator, degree, 5)
        reason = Reason(f"{topology}/{operator.name}", code, why, numbers)
        return OperatorDemand(topology, operator.name, degree, shares, shares, wanted, reason)
