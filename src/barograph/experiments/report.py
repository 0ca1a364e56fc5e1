"""The report of a run. docs/run.md documents every key."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from barograph.engines.latency import Histogram
from barograph.experiments.figures.repeats import RestartReport
from barograph.experiments.figures.steered import Steered
from barograph.experiments.verdict import Verdict

CLOCKS = ("due", "read", "record")
"""From when a row fell due, from when it was read, both by its own times; and by record times."""


@dataclass(frozen=True, slots=True)
class ActionReport:
    """One action and its outcome. gap_s: the longest pause of the output around it.

    did: sentences for people. moves, rescales: how many of them the action ordered.
    """

    at_s: float
    action: str
    ok: bool
    reason: str
    order_to_commit_s: float | None
    gap_s: float | None
    did: tuple[str, ...]
    moves: int = 0
    rescales: int = 0


@dataclass(frozen=True, slots=True)
class RunReport:
    """lines: rows of all inputs. first: what the run began with, as JSON, so that
    it can be passed between processes."""

    workload: str
    load: str
    seconds: float
    lines_due: int
    lines_undrained: int
    verdict: Verdict
    longest_pause_s: float
    epochs: int
    actions: tuple[ActionReport, ...]
    notes: tuple[str, ...]
    restarts: tuple[RestartReport, ...]
    output_rows: int
    latency: dict[str, Histogram]
    timeout_s: float
    steered: Steered
    start_ms: int
    degraded_s: dict[int, int] | None  # None: not known
    first: Mapping[str, object] | None = None

    @property
    def late_rows(self) -> int:
        return self.latency["due"].above(self.timeout_s * 1000)

    def _by(self, clock: str) -> Histogram:
        """Empty if it is not measured: Spark alone knows no record times."""
        return self.latency.get(clock, Histogram())

    @property
    def ok(self) -> bool:
        return self.verdict.exact and self.lines_undrained == 0 and all(a.ok for a in self.actions)

    def to_json(self) -> dict[str, object]:
        v = self.verdict
        return {
            "workload": self.workload,
            "load": self.load,
            "seconds": self.seconds,
            "start_ms": self.start_ms,
            "lines": {"due": self.lines_due, "undrained": self.lines_undrained},
            "rows": {
                "due": v.due,
                "counted": v.counted,
                "lost": v.lost,
                "counted_twice": v.counted_twice,
                "checksum_ok": v.checksum_ok,
                "late": self.late_rows,
            },
            "latency_ms": {clock: _latency(self._by(clock)) for clock in CLOCKS},
            "longest_pause_s": round(self.longest_pause_s, 3),
            "degraded_s": self.degraded_s,
            "epochs": self.epochs,
            "actions": [
                {
                    "at_s": a.at_s,
                    "action": a.action,
                    "ok": a.ok,
                    "reason": a.reason,
                    "order_to_commit_s": _rounded(a.order_to_commit_s),
                    "gap_s": _rounded(a.gap_s),
                    "did": list(a.did),
                }
                for a in self.actions
            ],
            "output": {"rows": self.output_rows, "repeated": sum(r.rows_repeated for r in self.restarts)},
            "restarts": [r.to_json() for r in self.restarts],
            "notes": list(self.notes),
            "first": self.first,
            **self.steered.to_json(),
        }

    def summary(self) -> str:
        v = self.verdict
        lines = [
            f"input   due {self.lines_due:,}  undrained {self.lines_undrained:,}",
            f"result  due {v.due:,}  counted {v.counted:,}  lost {v.lost:,}  counted twice {v.counted_twice:,}"
            + ("" if v.checksum_ok else "  CHECKSUM DIFFERS"),
            f"pause   longest {self.longest_pause_s:.2f} s over {self.epochs} epochs",
            f"below   {_degraded(self.degraded_s)}",
        ]
        for clock in CLOCKS:
            found = self._by(clock).latency()
            late = f"  late {self.late_rows:,} (above {self.timeout_s:g} s)" if clock == "due" else ""
            lines.append(
                f"{clock:<7} " + ("no row was measured" if found is None else
                f"mean {found.mean:,.0f} ms  p50 {found.p50:,.0f}  p99 {found.p99:,.0f}  p999 {found.p999:,.0f}  "
                f"max {found.max:,.0f}{late}")
            )  # fmt: skip
        for a in self.actions:
            took = "" if a.order_to_commit_s is None else f"  committed after {a.order_to_commit_s:.2f} s"
            gap = "" if a.gap_s is None else f", output paused {a.gap_s:.2f} s"
            lines.append(f"at {a.at_s:>5g}s  {a.action:<24} {'done' + took + gap if a.ok else 'REFUSED: ' + a.reason}")
        for r in self.restarts:
            again = f"{r.rows_replayed:,} rows read again, {r.rows_repeated:,} written again"
            lines.append(f"failed  at {r.at_s:.1f} s: {r.cause}; down for {r.down_s:.2f} s, {again}")
        lines += self.steered.lines()
        lines += [f"note    {n}" for n in self.notes]
        return "\n".join(lines)


def _latency(histogram: Histogram) -> dict[str, float] | None:
    found = histogram.latency()
    return None if found is None else {name: round(value, 1) for name, value in asdict(found).items()}


def _degraded(found: dict[int, int] | None) -> str:
    if found is None:
        return "unknown: there was no second without a disturbance to compare with"
    return "stable output by at least " + ", ".join(f"{pct} %: {seconds} s" for pct, seconds in found.items())


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
