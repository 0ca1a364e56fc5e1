"""A run's history and report as curves."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.cycles import chain, nodes, remembered, seen

from barograph.experiments.story import story
from barograph.history import Recorder
from barograph.model import InstanceMetrics, Latency, Operator, Outcome, Placement, Plan, Slot, TopologyMetrics

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("a", 1))
REPORT = {
    "seconds": 10.0,
    "load": "ramp 0s=100 10s=200",
    "rows": {"late": 0, "lost": 0, "counted_twice": 0},
    "latency_ms": {"due": {"mean": 7.0, "p99": 20.0}},
    "cpu_core_s": {"reserved": 4.0, "limit": 5.0, "used": 2.0},
    "decisions": [{"at_s": 2.0, "pause_s": None}, {"at_s": 6.0, "pause_s": 0.4}],
}


def test_curves(tmp_path: Path) -> None:
    wall_s = [1000.0, 1002.0, 1006.0]  # the load begins at 1001
    clock = iter([*wall_s, *wall_s[-1:] * 9])
    recorder = Recorder(tmp_path, "adaptive", "act", clock=lambda: next(clock))
    for share in (30.0, 20.0, 40.0):
        instances = {i: Slot("n1", 0) for i in TOPOLOGY.instances()}
        work = {"s": InstanceMetrics(executed=300, cpu_s=0.5), "a": InstanceMetrics(executed=300, cpu_s=1.0)}
        now = replace(
            seen(TOPOLOGY, work, cluster=nodes(1, 200), placement=Placement(instances), cycle_s=2.0),
            topology_metrics=(TopologyMetrics("t", 1, latency_due=Latency(7.0, 6.0, 20.0, 21.0, 22.0)),),
        )
        plan = Plan(shares_pct=dict.fromkeys(instances, share / 2), limits_pct=dict.fromkeys(instances, share))
        recorder.record(replace(remembered(now, plan=plan), outcome=Outcome()))
    recorder.close()
    found = story("adaptive", REPORT, tmp_path, 1_001_000)
    load, cpu, times = found.panels
    assert load.series[0].points[5][1] == pytest.approx(150.0)
    assert load.series[1].points[1] == (1.0, 150.0)
    assert cpu.series[0].points == ((0.0, 60.0), (1.0, 40.0), (5.0, 80.0), (10.0, 80.0))
    assert cpu.series[1].points == ((0.0, 30.0), (1.0, 20.0), (5.0, 40.0), (10.0, 40.0))
    assert [s.name for s in cpu.series] == ["limit", "reserved", "used"]
    assert cpu.series[2].points[0][1] == pytest.approx(75.0)
    assert [p[1] for p in times.series[1].points] == [20.0] * 3
    assert found.decisions == (6.0,), "shares change without a pause"
    assert "lost 0" in found.line
