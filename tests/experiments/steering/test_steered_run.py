"""The whole command with a policy: a controller process acts on a real cluster, and every row is counted once."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from barograph.experiments.steering.first_placement import first_decision
from barograph.history.read import cycles
from barograph.model import ReasonCode, Snapshot
from barograph.policy.definition import Policy
from barograph.policy.registry import named
from barograph.workloads import wordcount

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_a_run_that_a_policy_steers(tmp_path: Path) -> None:
    history = tmp_path / "history"
    command = [
        sys.executable, "-m", "barograph.cli.main", "run", "wordcount", "--policy", "adaptive", "--cycle", "2s",
        "--node-cpu", "1", "--seconds", "30", "--load", "ramp 0s=200 15s=1500 30s=200", "--history", str(history),
        "--format", "json",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert (report["rows"]["lost"], report["rows"]["counted_twice"], report["rows"]["checksum_ok"]) == (0, 0, True)
    assert report["policy"] == "adaptive"
    assert report["controller"]["starts"] == 1, report["controller"]
    cpu = report["cpu_core_s"]
    assert 0 < cpu["used"] < cpu["limit"], "what is lent counts as a limit"
    assert 0 < cpu["reserved"] < cpu["limit"], "and not as reserved"
    assert report["traffic"]["inter_node_share"] <= report["traffic"]["inter_worker_share"] <= 1
    assert report["workers_used"] == report["nodes_used"], "one worker a node"
    split = report["operators"]["wordcount/split"]
    assert len({len(series) for series in split.values()}) == 1 and max(split["used_pct"]) > 0
    assert report["decisions"], "it never decided anything"
    assert all(d["why"] for d in report["decisions"])
    recorded = list(cycles(history))
    assert len(recorded) >= 2  # a busy machine lets few cycles through
    # It begins where the policy puts it, and not where another would.
    seen = recorded[0].snapshot
    own, dealt = placed(named("adaptive"), seen), placed(None, seen)
    assert report["first"]["placement"] == own != dealt
    assert {f"{i.operator}/{i.index}": str(s) for i, s in seen.placement.slots.items()} == own
    # And it moves in its own way.
    assert report["migration"] == "warm-cut"
    assert {c.plan.mode.value for c in recorded} == {"warm-cut"}
    refused = [r for c in recorded if c.outcome is not None for r in c.outcome.refused]
    assert not refused
    assert any(c.plan.limits_pct for c in recorded)


@pytest.mark.slow
def test_a_run_with_a_target_for_its_p99(tmp_path: Path) -> None:
    """The target reaches the policy, which forecasts the p99 from what was measured, and says what becomes of it."""
    history = tmp_path / "history"
    command = [
        sys.executable, "-m", "barograph.cli.main", "run", "wordcount", "--policy", "adaptive", "--cycle", "1s",
        "--target-p99", "1000", "--node-cpu", "1", "--seconds", "25", "--load", "ramp 0s=200 12s=600 25s=200",
        "--recovery", "off", "--history", str(history), "--format", "json",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report, recorded = json.loads(done.stdout), list(cycles(history))
    assert (report["rows"]["lost"], report["rows"]["counted_twice"]) == (0, 0)
    assert {t.target_p99_ms for c in recorded for t in c.snapshot.topologies} == {1000.0}
    known = [r for c in recorded for r in c.demand.reasons if r.code.value.startswith("target-")]
    assert known, [m.latency_due for c in recorded for m in c.snapshot.topology_metrics]
    assert {r.code for r in known} <= {ReasonCode.TARGET_HELD, ReasonCode.TARGET_MISSED}, "its rows carry a time"
    assert all(r.numbers["forecast_p99_ms"] > 0 and "bought_pct" in r.numbers for r in known)
    said = [r.code for c in recorded for r in c.plan.reasons if r.code.value.startswith("target-")]
    assert all(a is not b for a, b in pairwise(said)), "each is said when it begins"


def placed(policy: Policy | None, seen: Snapshot) -> object:
    topology = wordcount.topology(wordcount.DEFAULT_PARALLELISM)
    return first_decision(policy, seen, topology).to_json()["placement"]
