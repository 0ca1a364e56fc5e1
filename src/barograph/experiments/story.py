"""What a run's history and report say, as a column of the picture. It decides nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barograph.experiments.held import Held, in_all
from barograph.experiments.meter import looks
from barograph.experiments.picture import BLUE, GREEN, GREY, ORANGE, RED, Panel, Point, Series, Story
from barograph.history.read import entries
from barograph.model import Load


def story(title: str, report: Mapping[str, Any], history: Path, start_ms: int) -> Story:
    """start_ms: the load's start, since 1970."""
    seconds = float(report["seconds"])
    load = Load.parse(report["load"]).schedule(seconds)
    due = tuple((float(s), load.rate_at(float(s))) for s in range(int(seconds) + 1))
    seen = [((e.wall_ms - start_ms) / 1000, e.cycle) for e in entries(history) if e.cycle is not None]
    seen = [(at_s, c) for at_s, c in seen if -10 <= at_s <= seconds + 1]
    read, used, mean, p99 = [], [], [], []
    for at_s, cycle in seen:
        now = cycle.snapshot
        rows = sum(
            now.metrics.of_operator(t.name, o.name).executed for t in now.topologies for o in t.operators if o.source
        )
        read.append((at_s, rows / now.cycle_s))
        used.append((at_s, 100.0 * float(now.metrics.columns["cpu_s"].sum()) / now.cycle_s))
        latency = next((t.latency_due for t in now.topology_metrics), None)
        mean.append((at_s, None if latency is None else latency.mean))
        p99.append((at_s, None if latency is None else latency.p99))
    held = [(max(look.at_s, 0.0), in_all(look.now, look.placement, look.held)) for look in looks(seen, Held())]
    panels = (
        Panel("lines a second", (Series("due", BLUE, due), Series("read", GREY, tuple(read)))),
        Panel("CPU of all instances, per cent of a core", (
            Series("limit", GREY, _until(seconds, [(at_s, cpu.limit_pct) for at_s, cpu in held]), steps=True),
            Series("reserved", ORANGE, _until(seconds, [(at_s, cpu.reserved_pct) for at_s, cpu in held]), steps=True),
            Series("used", GREEN, tuple(used)),
        )),
        Panel("complete time, ms", (Series("mean", BLUE, tuple(mean)), Series("p99", RED, tuple(p99))), log=True),
    )  # fmt: skip
    cuts = tuple(float(d["at_s"]) for d in report["decisions"] if d["pause_s"] is not None)
    return Story(title, line(report), panels, cuts)


def _until(seconds: float, points: list[tuple[float, float]]) -> tuple[Point, ...]:
    """The last value holds to the end."""
    return (*points, (seconds, points[-1][1] if points else None))


def line(report: Mapping[str, Any]) -> str:
    rows, due, cpu = report["rows"], report["latency_ms"]["due"], report["cpu_core_s"]
    return (
        f"mean {due['mean']:,.0f} ms, p99 {due['p99']:,.0f} ms, late {rows['late']:,}; {cpu['reserved']:.0f} core-s "
        f"reserved, {cpu['used']:.0f} used; lost {rows['lost']}, counted twice {rows['counted_twice']}"
    )
