"""What a run's report says about steering: figures, changes and decisions. docs/run.md documents every key."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from barograph.experiments.figures.asked_shares import OperatorShare
from barograph.experiments.figures.run_meter import Metered


@dataclass(frozen=True)
class Steered:
    """None: unknown. decisions: cycles that changed something or were refused.

    controller_starts: None where there was no controller. shares: by operator. migration: how the policy's plans took
    effect; None where no policy steered.
    """

    policy: str
    metered: Metered
    moves: int | None
    rescales: int
    decisions: tuple[dict[str, object], ...] = ()
    controller_starts: int | None = None
    said: tuple[str, ...] = ()
    shares: Mapping[str, OperatorShare] = field(default_factory=dict)
    migration: str | None = None

    def to_json(self) -> dict[str, object]:
        m = self.metered
        controlled = {"starts": self.controller_starts, "said": list(self.said)}
        return {
            "policy": self.policy,
            "migration": self.migration,
            "cpu_core_s": {
                "reserved": rounded(m.reserved_core_s), "limit": rounded(m.limit_core_s), "used": rounded(m.used_core_s)
            },
            "nodes_used": {"mean": rounded(m.nodes_mean), "max": m.nodes_max},
            "workers_used": {"mean": rounded(m.workers_mean), "max": m.workers_max},
            "traffic": None if m.traffic is None else asdict(m.traffic),
            "shares": {operator: share.to_json() for operator, share in self.shares.items()},
            "moves": self.moves,
            "rescales": self.rescales,
            "decisions": list(self.decisions),
            "controller": None if self.controller_starts is None else controlled,
            "operators": {name: asdict(series) for name, series in m.operators.items()},
        }  # fmt: skip

    def lines(self) -> list[str]:
        """A summary as text."""
        m, way = self.metered, "" if self.migration is None else f", {self.migration}"
        cpu_s = [told(v) for v in (m.reserved_core_s, m.limit_core_s, m.used_core_s)]
        found = [
            f"policy  {self.policy}{way}: {told(m.nodes_mean)} nodes on average, {told(m.nodes_max, 0)} at most; "
            f"{told(m.workers_mean)} workers, {told(m.workers_max, 0)} at most; "
            f"{told(self.moves, 0)} moves, {self.rescales} rescales",
            f"CPU     reserved {cpu_s[0]} core-s, limit {cpu_s[1]}, used {cpu_s[2]}",
        ]
        if (t := m.traffic) is not None:
            found.append(
                f"traffic between nodes {t.inter_node_rows_per_s:,.0f} rows/s ({t.inter_node_share:.0%} of all), "
                f"between workers {t.inter_worker_rows_per_s:,.0f} ({t.inter_worker_share:.0%})"
            )
        if m.operators:
            found.append(
                f"scale   instances: {', '.join(_degree(name, s.instances) for name, s in m.operators.items())}"
            )
        return found


def _degree(operator: str, instances: list[int]) -> str:
    low, high = min(instances), max(instances)
    return f"{operator.rpartition('/')[2]} {low}" if low == high else f"{operator.rpartition('/')[2]} {low} to {high}"


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def told(value: float | None, places: int = 1) -> str:
    return "unknown" if value is None else f"{value:,.{places}f}"
