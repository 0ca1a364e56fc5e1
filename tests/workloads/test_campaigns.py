"""Campaigns, a workload with two inputs and a join: its shape, and an exact verdict on Spark through faults."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from barograph.model import BadInput, Load
from barograph.workloads import campaigns
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import Replay
from barograph.workloads.workload import rows_due, split_by_input

LOAD = Replay(Load.parse("constant 50").schedule(10), lines=LineShape(seed=3), close_s=4)
FIVE = {"source": 5, "enrich": 1, "count": 1}


def test_the_instances_of_the_source_are_shared_out_to_both_inputs() -> None:
    views, clicks = campaigns.inputs(LOAD, FIVE)
    assert (views.partitions, clicks.partitions) == (3, 2)
    assert views.numbers and clicks.numbers
    assert (views.lines.seed, clicks.lines.seed) == (3, 4)


def test_each_input_follows_the_load() -> None:
    both = campaigns.inputs(LOAD, FIVE)
    assert rows_due(both) == 2 * sum(LOAD.rows())


def test_rows_read_are_told_apart_by_input() -> None:
    both = campaigns.inputs(LOAD, FIVE)
    assert split_by_input(both, [1, 2, 3, 4, 5]) == [(1, 2, 3), (4, 5)]
    assert split_by_input(both, []) == [(0, 0, 0), (0, 0)]
    with pytest.raises(BadInput, match="4 partitions were read and the inputs have 5"):
        split_by_input(both, [1, 2, 3, 4])


def test_a_source_with_one_instance_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 2 instances"):
        campaigns.topology({**FIVE, "source": 1})


def test_inputs_keep_the_end_and_the_start_of_the_load() -> None:
    assert {(r.close_s, r.start_ms) for r in campaigns.inputs(replace(LOAD, start_ms=7), FIVE)} == {(4, 7)}


@pytest.mark.slow  # tests/engines/spark/query/test_two_inputs.py does the same without the command
@pytest.mark.spark
def test_the_verdict_is_exact_with_moves_scales_and_a_kill() -> None:
    command = [
        sys.executable, "-m", "barograph.cli.main", "run", "campaigns", "--load", "constant 400", "--seconds", "18",
        "--epoch", "15s", "--format", "json", "--at", "3:move count/1=node-2", "--at", "5:scale enrich=4",
        "--at", "8:scale count=4", "--at", "13:kill executor@node-1",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    rows, due = report["rows"], 2 * 18 * 400
    assert report["lines"] == {"due": due, "undrained": 0}
    assert (rows["due"], rows["counted"]) == (due, due)
    assert (rows["lost"], rows["counted_twice"], rows["checksum_ok"]) == (0, 0, True)
    assert [a["ok"] for a in report["actions"]] == [True] * 4
    assert "killed executor" in report["actions"][3]["did"][0]
    assert ["lost executor" in r["cause"] for r in report["restarts"]] == [True]
