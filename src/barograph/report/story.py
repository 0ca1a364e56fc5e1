"""A run's history and report as curves and marks for the chart. It decides nothing and draws nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from barograph.experiments.figures.cpu_in_force import CpuInForce, in_all
from barograph.experiments.figures.run_meter import looks
from barograph.history.places import HistoryPath
from barograph.history.read import entries
from barograph.model import Cycle, LatencyKind, Load
from barograph.report.chart import BLUE, GREEN, GREY, ORANGE, RED, Mark, Panel, Point, Series, Story

BEFORE_S = 10.0  # how long before the load cycles are shown, because they say how a run began


def story(title: str, report: Mapping[str, Any], history: HistoryPath, start_ms: int) -> Story:
    """start_ms: when the load began, in milliseconds since 1970."""
    seconds = float(report["seconds"])
    load = Load.parse(report["load"]).schedule(seconds)
    due = tuple((float(s), load.rate_at(float(s))) for s in range(int(seconds) + 1))
    seen = [((e.wall_ms - start_ms) / 1000, e.cycle) for e in entries(history) if e.cycle is not None]
    seen = [(at_s, c) for at_s, c in seen if -BEFORE_S <= at_s <= seconds + 1]
    read, used = [], []
    for at_s, cycle in seen:
        now = cycle.snapshot
        rows = sum(
            now.metrics.of_operator(t.name, o.name).executed for t in now.topologies for o in t.operators if o.source
        )
        read.append((at_s, rows / now.cycle_s))
        used.append((at_s, float(now.metrics.columns["cpu_s"].sum()) / now.cycle_s))
    in_force = [(max(look.at_s, 0.0), look) for look in looks(seen, CpuInForce())]
    cpu = [(at_s, in_all(look.now, look.placement, look.held)) for at_s, look in in_force]
    nodes = [(at_s, float(len({slot.node for slot in look.placement.slots.values()}))) for at_s, look in in_force]
    instances = [(at_s, float(len(look.placement.slots))) for at_s, look in in_force]
    panels = (
        Panel("Load", "lines/s", (Series("due", BLUE, due), Series("read", ORANGE, tuple(read), dashed=True))),
        Panel("CPU of all instances", "cores", (
            Series("limit", GREY, _until(seconds, [(at_s, c.limit_pct / 100) for at_s, c in cpu]), True, dashed=True),
            Series("reserved", ORANGE, _until(seconds, [(at_s, c.reserved_pct / 100) for at_s, c in cpu]), steps=True),
            Series("used", BLUE, tuple(used)),
        )),
        Panel("Latency by column, from the time a line is due", "ms", _latency(seen, LatencyKind.COLUMN), log=True),
        Panel("Latency by record time, a bound", "ms", _latency(seen, LatencyKind.RECORD), log=True),
        Panel("Instances, and nodes that hold them", "count", (
            Series("instances", BLUE, _until(seconds, instances), steps=True),
            Series("nodes", GREEN, _until(seconds, nodes), steps=True, dashed=True),
        ), whole=True),
    )  # fmt: skip
    return Story(title, line(report), panels, (*_actions(report), *_decisions(seen, seconds)))


def _latency(seen: Sequence[tuple[float, Cycle]], kind: LatencyKind) -> tuple[Series, ...]:
    times = [(at_s, next((t.of_kind(kind) for t in c.snapshot.topology_metrics), None)) for at_s, c in seen]
    p99 = tuple((at_s, None if latency is None else latency.p99) for at_s, latency in times)
    mean = tuple((at_s, None if latency is None else latency.mean) for at_s, latency in times)
    return Series("p99", RED, p99), Series("mean", BLUE, mean)


def _until(seconds: float, points: list[tuple[float, float]]) -> tuple[Point, ...]:
    """The last value holds to the end."""
    return (*points, (seconds, points[-1][1] if points else None))


def _decisions(seen: Sequence[tuple[float, Cycle]], seconds: float) -> tuple[Mark, ...]:
    """Moves and scales that were carried out. Shares and limits change without a pause and are not marked."""
    found = []
    for at_s, cycle in seen:
        done = cycle.outcome is not None and cycle.outcome.ok and cycle.outcome.order_to_commit_s is not None
        if done and 0 <= at_s <= seconds and (label := _label(cycle)):
            found.append(Mark(at_s, label))
    return tuple(found)


def _label(cycle: Cycle) -> str:
    now, plan = cycle.snapshot, cycle.plan
    before = {(t.name, o.name): o.parallelism for t in now.topologies for o in t.operators}
    scales = [f"{r.operator} {before.get((r.topology, r.operator), 0)}→{r.parallelism}" for r in plan.rescales]
    moves = sum(i in now.placement and now.placement.get(i) != slot for i, slot in plan.placement.slots.items())
    return ", ".join([*scales, *([f"{moves} move" + ("s" if moves > 1 else "")] if moves else [])])


def _actions(report: Mapping[str, Any]) -> tuple[Mark, ...]:
    """Actions ordered with --at, including kills."""
    return tuple(Mark(float(a["at_s"]), str(a["action"])) for a in report.get("actions", ()) if a["ok"])


def line(report: Mapping[str, Any]) -> str:
    """The run's results in two lines."""
    rows, cpu, latency = report["rows"], report["cpu_core_s"], report["latency_ms"]
    kinds = (("by column", latency["due"]), ("by record time", latency.get("record")))
    told = ", ".join(f"{f['mean']:,.0f} / {f['p99']:,.0f} ms {how}" for how, f in kinds if f is not None)
    return (
        f"latency, mean / p99: {told or 'not known'}\n"
        f"rows: {rows['late']:,} late, {rows['lost']:,} lost, {rows['counted_twice']:,} counted twice; "
        f"core-s: {cpu['reserved']:.0f} reserved, {cpu['used']:.0f} used; "
        f"moves {report['moves']}, scales {report['rescales']}"
    )
