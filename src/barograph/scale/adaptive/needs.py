"""The work of each operator in the next cycle, for the adaptive scaler: from forecast, parents, backlog and cost.

Operators are computed in topological order; what an operator sends on depends on the instances it was given.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from barograph.model import Cycle, Forecast, Frame, Operator, Topology, ratio_of_sums
from barograph.model.frame import NOTHING
from barograph.scale.adaptive.hot_keys import HotOperator, hot_instances
from barograph.scale.adaptive.instances import Need
from barograph.scale.adaptive.service_time import busy_s_per_row
from barograph.scale.adaptive.skew import backlog_rows, may_be_skewed, parts_of_arrivals
from barograph.scale.adaptive.spans import Spans
from barograph.scale.protocol import ceil, instance_limit_pct


def fewest_that_use(cpu_pct: float, limit_pct: float, nodes_pct: Sequence[float]) -> int:
    """The fewest instances that can use so much CPU, on empty nodes of these sizes, each on one node."""
    pieces = [min(limit_pct, left) for pct in nodes_pct for left in np.arange(pct, 0.0, -limit_pct).tolist()]
    count = 0
    for piece in sorted(pieces, reverse=True):
        if cpu_pct <= 1e-9:
            break
        cpu_pct -= piece
        count += 1
    return count


class Needs:
    """Created for every decision."""

    def __init__(
        self,
        history: Sequence[Cycle],
        frame: Frame,
        forecast: Forecast,
        *,
        phi: int,
        catch_up_cycles: float,
        lasting_cycles: float,
        margin: float,
        utilisation: float,
        low: float,
        hurried: Collection[str] = (),
    ) -> None:
        """phi, catch_up_cycles, lasting_cycles: as in ``Spans``. hurried: topologies that should clear their backlog
        within a cycle of it."""
        self.history, self.frame, self.forecast = history, frame, forecast
        self.spans = Spans.of(frame)
        self.phi, self.margin, self.utilisation, self.low = self.spans.back(frame, phi), margin, utilisation, low
        self.catch_up_part, self.lasting_part = self.spans.part(catch_up_cycles), self.spans.part(lasting_cycles)
        self.hurried = frozenset(hurried)
        self.hot: dict[tuple[str, str], HotOperator] = {}
        self.kappa = ratio_of_sums(frame.column("cpu_s"), frame.column("executed"), self.phi)
        self.parents = self._parents()
        self.passing: dict[int, float] = {}  # rows each operator will execute in the next cycle
        self.lasting: dict[int, float] = {}  # the same if no topology were hurried
        self.asked_pct = self._asked_pct()

    def _parents(self) -> dict[int, list[tuple[int, float]]]:
        """The parents of each operator, with the rows they send to it per row they execute."""
        found: dict[int, list[tuple[int, float]]] = defaultdict(list)
        links = self.frame.links
        if links:
            executed = self.frame.column("executed")[:, [link.parent for link in links]]
            passed = np.nan_to_num(ratio_of_sums(self.frame.sent, executed, self.phi)).tolist()
            for link, ratio in zip(links, passed, strict=True):
                found[link.child].append((link.parent, ratio))
        return found

    def _asked_pct(self) -> NDArray[np.float64]:
        """CPU that each operator will need in the long run, if none is slowed down by another."""
        backlog = (np.maximum(self.frame.column("pending")[-1], 0.0) * self.lasting_part).tolist()
        rows: list[float] = []
        for i, key in enumerate(self.frame.keys):
            expected = self.forecast.of(*key)
            sent = sum(rows[p] * ratio for p, ratio in self.parents[i])
            rows.append(max(expected.arrived if expected else 0.0, sent) + backlog[i])
        asked: NDArray[np.float64] = 100.0 * np.nan_to_num(self.kappa) * np.array(rows) / float(self.frame.cycle_s[-1])
        return asked

    def _steady_rows(self, i: int) -> float:
        """Rows that are due at an operator in a cycle, without any backlog."""
        rows: list[float] = []
        for j, key in enumerate(self.frame.keys[: i + 1]):
            expected = self.forecast.of(*key)
            sent = sum(rows[p] * ratio for p, ratio in self.parents[j])
            rows.append(sent if self.parents[j] else expected.arrived if expected else 0.0)
        return rows[i]

    def _useful(self, i: int, limit_pct: float) -> int:
        """With how many instances an operator can use all the CPU there is for it.

        If all together need nearly the whole cluster, more instances of one would only take CPU from the others: each
        then counts on its part, and gets the fewest instances that can use it on nodes of these sizes.
        """
        now = self.frame.snapshots[-1]
        cluster, asked = now.cluster_cpu_pct, float(self.asked_pct.sum())
        if asked <= self.utilisation * cluster:
            return ceil(cluster / limit_pct)
        own = float(self.asked_pct[i])
        part = cluster * own / asked if asked > cluster else own
        return fewest_that_use(part, limit_pct, [n.cpu_pct for n in now.nodes])

    def of(self, topology: Topology, operator: Operator) -> Need:
        """The work of the operator, by instance. Its parents must have been computed before."""
        key, now, count = (topology.name, operator.name), self.frame.snapshots[-1], operator.parallelism
        i = self.frame.position[key]
        expected = self.forecast.of(*key)
        sent = sum(self.passing[p] * ratio for p, ratio in self.parents[i])
        arriving = max(expected.arrived if expected else 0.0, sent)
        # A backlog that is to be cleared at once is no reason for more instances: their own pause makes the next one.
        calmly = max(
            expected.arrived if expected else 0.0, sum(self.lasting[p] * ratio for p, ratio in self.parents[i])
        )
        surely = max(arriving, expected.arrived + self.margin * expected.error_rows if expected else 0.0)
        parts = parts_of_arrivals(self.frame, topology, operator.name, count, self.phi)
        backlog = backlog_rows(self.frame, topology.name, operator.name, count)
        kappa_s = float(self.kappa[i]) if np.isfinite(self.kappa[i]) else None
        limit_pct = instance_limit_pct(now)
        hot = hot_instances(self.history, self.frame, topology, operator.name)
        catching_up = backlog * self._catch_up_part(i, arriving, float(backlog.sum()))
        need = Need(
            arriving=arriving,
            rows=arriving * parts + catching_up,
            sure_rows=surely * parts + catching_up,
            lasting_rows=calmly * parts + backlog * self.lasting_part,
            backlog=float(backlog.sum()),
            kappa_s=kappa_s,
            service_s=0.0 if kappa_s is None else busy_s_per_row(self.history, self.frame, key, kappa_s, self.phi),
            cycle_s=now.cycle_s,
            limit_pct=limit_pct,
            useful=self._useful(i, limit_pct),
            utilisation=self.utilisation,
            low=self.low,
            by_key=may_be_skewed(topology, operator.name),
            key_part=hot[0].key_part if hot else 0.0,
        )
        if not hot:
            return need
        rows = self._steady_rows(i)
        busy = rows / need.capacity_rows(1)
        self.hot[key] = HotOperator(hot, 100.0 * (kappa_s or 0.0) * rows / now.cycle_s, busy)
        return replace(need, key_load=hot[0].key_part * busy, hot_part=hot[0].part, hot_load=hot[0].part * busy)

    def _catch_up_part(self, i: int, arriving: float, backlog: float) -> float:
        """Which part of its backlog an operator should execute in the next cycle.

        A fixed part would get smaller each cycle, and the rest of a backlog would wait for ever: so an operator that is
        catching up keeps its pace until less than one cycle's rows are left.
        """
        part = self.catch_up_part
        if self.frame.keys[i][0] in self.hurried:
            # More than arrives would ask for all CPU there is for every instance: a hot one got no more than others.
            part = max(part, min(self.spans.part(1.0), arriving / max(backlog, NOTHING)))
        if backlog * self.spans.part(1.0) <= max(arriving, NOTHING):
            return part
        pace = float(self.frame.column("executed")[-1, i])
        return max(part, min(self.spans.part(1.0), (pace - arriving) / backlog))

    def passes_on(self, topology: Topology, operator: Operator, need: Need, degree: int) -> None:
        """Record how many instances the operator was given: this limits what it sends to its children."""
        i = self.frame.position[topology.name, operator.name]
        most, rows = need.capacity_rows(degree), float(need.rows.sum())
        self.passing[i] = min(rows, most)
        calm = need.lasting_rows if topology.name in self.hurried else need.rows
        self.lasting[i] = min(float(calm.sum()), most)
