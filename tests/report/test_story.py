"""A run's history and report as curves."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cycles import chain, nodes, remembered, seen

from barograph.history import Recorder
from barograph.model import (
    Instance,
    InstanceMetrics,
    Latency,
    Operator,
    Outcome,
    Placement,
    Plan,
    Rescale,
    Slot,
    TopologyMetrics,
)
from barograph.report.chart import LABEL_CHARACTERS, Mark
from barograph.report.story import line, story

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("a", 1))
REPORT = {
    "seconds": 10.0,
    "load": "ramp 0s=100 10s=200",
    "rows": {"late": 0, "lost": 0, "counted_twice": 0},
    "latency_ms": {"due": {"mean": 7.0, "p99": 20.0}, "record": {"mean": 9.0, "p99": 30.0}},
    "cpu_core_s": {"reserved": 4.0, "limit": 5.0, "used": 2.0},
    "moves": 1,
    "rescales": 1,
    "actions": [
        {"at_s": 3.0, "action": "kill executor@n1", "ok": True},
        {"at_s": 4.0, "action": "kill node@n9", "ok": False},
    ],
}


def test_curves(tmp_path: Path) -> None:
    wall_s = [1000.0, 1002.0, 1006.0]  # the load begins at 1001
    clock = iter([*wall_s, *wall_s[-1:] * 9])
    recorder = Recorder(tmp_path, "adaptive", "act", clock=lambda: next(clock))
    for share in (30.0, 20.0, 40.0):
        last = share == 40.0
        instances = {i: Slot("n1", 0) for i in TOPOLOGY.instances()}
        work = {"s": InstanceMetrics(executed=300, cpu_s=0.5), "a": InstanceMetrics(executed=300, cpu_s=1.0)}
        now = replace(
            seen(TOPOLOGY, work, cluster=nodes(2, 200), placement=Placement(instances), cycle_s=2.0),
            topology_metrics=(
                TopologyMetrics(
                    "t",
                    1,
                    latency_due=Latency(7.0, 6.0, 20.0, 21.0, 22.0),
                    latency_record=Latency(9.0, 8.0, 30.0, 31.0, 32.0),
                ),
            ),
        )
        plan = Plan(shares_pct=dict.fromkeys(instances, share / 2), limits_pct=dict.fromkeys(instances, share))
        if last:
            moved = Placement({Instance("t", "a", 0): Slot("n2", 0), Instance("t", "a", 1): Slot("n2", 0)})
            plan = replace(plan, placement=moved, rescales=(Rescale("t", "a", 2),))
        outcome = Outcome(order_to_commit_s=0.4 if last else None)
        recorder.record(replace(remembered(now, plan=plan), outcome=outcome))
    recorder.close()
    found = story("adaptive", REPORT, tmp_path, 1_001_000)
    load, cpu, column, record, used = found.panels
    assert load.series[0].points[5][1] == pytest.approx(150.0)
    assert load.series[1].points[1] == (1.0, 150.0)
    assert cpu.series[0].points == ((0.0, 0.6), (1.0, 0.4), (5.0, 0.8), (10.0, 0.8))
    assert cpu.series[1].points == ((0.0, 0.3), (1.0, 0.2), (5.0, 0.4), (10.0, 0.4))
    assert [s.name for s in cpu.series] == ["limit", "reserved", "used"]
    assert cpu.series[2].points[0][1] == pytest.approx(0.75)
    for panel, kind, p99, mean in ((column, "by column", 20.0, 7.0), (record, "by record time", 30.0, 9.0)):
        assert panel.title.startswith(f"Latency {kind}")
        assert {s.name: [p[1] for p in s.points] for s in panel.series} == {"p99": [p99] * 3, "mean": [mean] * 3}
    assert used.series[0].points == ((0.0, 2.0), (1.0, 2.0), (5.0, 2.0), (10.0, 2.0)), "instances that were seen"
    assert used.series[1].points == ((0.0, 1.0), (1.0, 1.0), (5.0, 2.0), (10.0, 2.0)), "nodes"
    assert found.marks == (Mark(3.0, "kill executor@n1"), Mark(5.0, "a 1→2, 1 move")), "shares change without a pause"
    assert "0 lost" in found.line
    assert found.line.startswith("latency, mean / p99: 7 / 20 ms by column, 9 / 30 ms by record time\n")
    assert max(map(len, found.line.splitlines())) <= LABEL_CHARACTERS


def test_the_line_names_what_is_known_alone() -> None:
    alone: dict[str, Any] = {**REPORT, "latency_ms": {"due": None, "record": {"mean": 9.0, "p99": 30.0}}}
    assert line(alone).startswith("latency, mean / p99: 9 / 30 ms by record time\n")
    assert line({**REPORT, "latency_ms": {"due": None, "record": None}}).startswith("latency, mean / p99: not known\n")
