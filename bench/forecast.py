"""Error of each forecaster on every load shape, 1, 3 and 6 cycles ahead, side by side.

A chain source -> work -> store: work has a capacity of 1.2 times the mean load, so peaks leave a backlog that reaches
store later; every row of work becomes two. Loads carry 5 % of seeded noise. The error is the mean absolute error over
the three operators, in per cent of each one's mean arrivals; the first 24 cycles are warm-up. Bar: the error of
best-of is at most 1.25 times that of the best single forecaster of the row, which is not known beforehand.
"""

import json
import math
import sys
from dataclasses import dataclass

import numpy as np

from barograph.forecast import BestOf, ByFrame
from barograph.model import (
    Allotment,
    Cycle,
    Demand,
    Edge,
    Forecast,
    Frame,
    Instance,
    InstanceMetrics,
    Load,
    Metrics,
    Node,
    Operator,
    Plan,
    Snapshot,
    Topology,
)

CYCLES, WARM_UP, EVERY, CYCLE_S = 240, 24, 2, 10.0
HORIZONS = (1, 3, 6)
NOISE = 0.05
BAR = 1.25
CHAIN = Topology(
    "chain",
    (Operator("source", 1, source=True), Operator("work", 1), Operator("store", 1)),
    (Edge("source", "work"), Edge("work", "store")),
)


def _diurnal(_path: str) -> str:
    """Two days in the time of the bench: low at night, a peak at noon and a higher one in the evening."""
    day_s = CYCLES * CYCLE_S / 2
    lines = []
    for k in range(int(CYCLES * CYCLE_S / 30)):
        hour = (k * 30 % day_s) / day_s * 24
        rate = 300 + 900 * math.exp(-(((hour - 12) / 3) ** 2)) + 1300 * math.exp(-(((hour - 20) / 2.5) ** 2))
        lines.append(f"{k * 30},{rate:.1f}")
    return "\n".join(lines)


SHAPES = {
    "constant": Load.parse("constant 2000"),
    "steps": Load.parse("steps 0s=500 500s=2500 1000s=900 1500s=2000 2000s=500"),
    "ramp": Load.parse("ramp 0s=500 300s=2500 600s=500 900s=2500 1200s=500 1500s=2500 1800s=500 2100s=2500 2400s=500"),
    "onoff": Load.parse("onoff high=2500 low=500 share=0.5 period=300s"),
    "random": Load.parse("random 1..25 x100 every 10s seed=7"),
    "diurnal": Load.parse("trace diurnal", read=_diurnal),
}


def cycles_of(load: Load, seed: int) -> list[Cycle]:
    """The cycles that a controller would have observed of the chain under the load."""
    schedule = load.schedule(CYCLES * CYCLE_S)
    due = [schedule.rows_by((k + 1) * CYCLE_S) - schedule.rows_by(k * CYCLE_S) for k in range(CYCLES)]
    noise = np.random.default_rng(seed).normal(1.0, NOISE, CYCLES)
    most = 1.2 * float(np.mean(due))
    waiting, found = 0.0, []
    for k, rows in enumerate(np.maximum(0.0, np.array(due) * noise).tolist()):
        done = min(rows + waiting, most)
        waiting += rows - done
        numbers = {
            "source": InstanceMetrics(rows, rows, rows, 0.0, rows / 1e5, rows / 1e5),
            "work": InstanceMetrics(rows, done, 2 * done, waiting, done / 1e4, done / 1e4),
            "store": InstanceMetrics(2 * done, 2 * done, 0.0, 0.0, done / 1e4, done / 1e4),
        }
        metrics = Metrics.of({Instance("chain", o, 0): m for o, m in numbers.items()})
        now = Snapshot(k * CYCLE_S, CYCLE_S, (Node("n1", 400.0),), (CHAIN,), metrics=metrics)
        found.append(Cycle(now, Forecast(()), Demand(()), Allotment(), Plan()))
    return found


@dataclass(frozen=True)
class Row:
    shape: str
    horizon_cycles: int
    error_pct: dict[str, float]

    @property
    def best_single(self) -> str:
        return min((n for n in self.error_pct if n != BestOf.name), key=lambda n: self.error_pct[n])

    @property
    def ratio(self) -> float:
        return self.error_pct[BestOf.name] / max(self.error_pct[self.best_single], 1e-9)


def errors(shape: str, load: Load, forecasters: tuple[ByFrame, ...]) -> list[Row]:
    run = cycles_of(load, seed=1)
    actual = Frame.of(run[:-1], run[-1].snapshot, CYCLES).column("arrived")
    mean = actual.mean(axis=0)
    off = {(f.name, h): np.zeros(actual.shape[1]) for f in forecasters for h in HORIZONS}
    count = dict.fromkeys(HORIZONS, 0)
    for k in range(WARM_UP, CYCLES - 1, EVERY):
        frame = Frame.of(run[:k], run[k].snapshot)
        for h in HORIZONS:
            if k + h < CYCLES:
                count[h] += 1
                for f in forecasters:
                    off[f.name, h] += np.abs(f.estimate(frame, h).arrived - actual[k + h])
    return [
        Row(shape, h, {f.name: float(np.mean(100 * off[f.name, h] / count[h] / mean)) for f in forecasters})
        for h in HORIZONS
    ]


def main() -> int:
    best_of = BestOf()
    forecasters = (*best_of.candidates, best_of)
    rows = [row for shape, load in SHAPES.items() for row in errors(shape, load, forecasters)]
    _table(rows, [f.name for f in forecasters])
    missed = [f"{r.shape} {r.horizon_cycles}" for r in rows if r.ratio > BAR]
    found = [
        {
            "shape": r.shape,
            "horizon_cycles": r.horizon_cycles,
            "error_pct": {n: round(e, 2) for n, e in r.error_pct.items()},
            "best_single": r.best_single,
            "best_of_over_best_single": round(r.ratio, 3),
        }
        for r in rows
    ]
    print(json.dumps({"rows": found, "bar": BAR, "missed": missed}, indent=2))
    return 1 if missed else 0


def _table(rows: list[Row], names: list[str]) -> None:
    print(f"{'error, % of mean':<18}" + "".join(f"{n:>17}" for n in names), file=sys.stderr)
    for r in rows:
        marks = ("*" if n == r.best_single else " " for n in names)
        cells = "".join(f"{r.error_pct[n]:>16.1f}{mark}" for n, mark in zip(names, marks, strict=True))
        print(f"{r.shape:<10}{r.horizon_cycles:>3} ahead{cells}", file=sys.stderr)
    print("* is the best single forecaster of the row", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
