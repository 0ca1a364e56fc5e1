"""A run's report, which the driver process passes to the process that started it."""

import json
import pickle
from dataclasses import replace

from tests.experiments.figures.test_steered import LIU
from tests.experiments.steering.test_first_placement import TOPOLOGY, cluster

from barograph.engines.latency import Histogram
from barograph.experiments.report import CLOCKS, RunReport
from barograph.experiments.steering.first_placement import first_decision
from barograph.experiments.verdict import Verdict
from barograph.policy.registry import named

REPORT = RunReport(
    "wordcount", "constant 5", 10.0, 50, 0, Verdict(400, 400, 0, 0, True), 0.1, 2, (), ("a note",), (), 400,
    {clock: Histogram.of([5] * 400) for clock in CLOCKS}, 30.0, LIU, 1_000, {20: 1},
    first_decision(named("liu"), cluster(), TOPOLOGY).to_json(),
)  # fmt: skip


def test_it_goes_from_one_process_to_another() -> None:
    assert pickle.loads(pickle.dumps(REPORT)) == REPORT


def test_latencies_are_named_by_what_they_are_measured_by() -> None:
    told = json.loads(json.dumps(REPORT.to_json()))["latency_ms"]
    assert {clock: found["p50"] for clock, found in told.items()} == dict.fromkeys(CLOCKS, 5)
    on_spark_alone = replace(REPORT, latency={"due": Histogram.of([5]), "read": Histogram.of([4])})
    assert json.loads(json.dumps(on_spark_alone.to_json()))["latency_ms"]["record"] is None
    assert "record  no row was measured" in on_spark_alone.summary()


def test_it_is_json() -> None:
    told = json.loads(json.dumps(REPORT.to_json()))
    assert told["first"]["by"] == "liu"
    assert set(told["first"]["placement"]) == {f"{i.operator}/{i.index}" for i in TOPOLOGY.instances()}
    assert told["rows"]["late"] == 0


def test_the_table_has_what_was_steered() -> None:
    summary = REPORT.summary()
    assert "policy  liu, worker" in summary and "CPU     reserved" in summary and "note    a note" in summary
