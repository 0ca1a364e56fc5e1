"""How the plug-in's reports become the metrics of a cycle."""

from barograph.engines.latency import Histogram
from barograph.engines.spark.bridge.cycle_totals import CycleTotals
from barograph.engines.spark.bridge.reports import (
    LatencyReport,
    MeterReport,
    ProcessUse,
    TelemetryReport,
    TrafficReport,
)
from barograph.model import Edge, Grouping, Instance, Operator, Topology

TOPOLOGY = Topology(
    "t", (Operator("source", 1, source=True), Operator("sink", 2)), (Edge("source", "sink", Grouping.SHUFFLE),)
)


def meter(operator: str, index: int, **counts: int) -> MeterReport:
    known = {"arrived": 0, "executed": 0, "emitted": 0, "pending": 0, "cpu_ns": 0, "busy_ns": 0, "idle_ns": 0}
    values = {**known, "blocked_ns": 0, **counts}
    arrived = values.pop("arrived")
    return MeterReport("t", operator, index, arrived, bool(values.pop("arrived_known", 1)), **values)


def seen(
    *meters: MeterReport, sent: tuple[TrafficReport, ...] = (), latencies: tuple[LatencyReport, ...] = ()
) -> TelemetryReport:
    return TelemetryReport((), (), (), (), (), {}, meters, sent, latencies, (ProcessUse("7", 250_000_000, 3 << 20),))


def taken(totals: CycleTotals, epochs: dict[str, int] | None = None):  # type: ignore[no-untyped-def]
    return totals.take([TOPOLOGY], {"t": 4} if epochs is None else epochs, {"7": "node-1", "8": "node-2"}, 30.0)


def test_several_reports_make_one_cycle_and_taking_it_resets_it() -> None:
    totals = CycleTotals()
    totals.add(seen(meter("source", 0, arrived=100, executed=80, emitted=80, pending=20, busy_ns=500_000_000)))
    totals.add(seen(meter("source", 0, arrived=50, executed=60, emitted=60, pending=10, busy_ns=250_000_000)))
    row = taken(totals).metrics.row(Instance("t", "source", 0))
    assert (row.arrived, row.executed, row.emitted, row.pending, row.busy_s) == (150, 140, 140, 10, 0.75)
    again = taken(totals).metrics.row(Instance("t", "source", 0))
    assert (again.arrived, again.executed, again.busy_s) == (0, 0, 0)


def test_rows_sent_to_an_instance_have_arrived_there() -> None:
    totals = CycleTotals()
    sent = (TrafficReport("t", "source", "sink", 0, 0, 30), TrafficReport("t", "source", "sink", 0, 1, 12))
    totals.add(seen(meter("sink", 0, executed=25), meter("sink", 1, executed=12), sent=sent))
    cycle = taken(totals)
    assert cycle.traffic[0].rows.tolist() == [[30, 12]]
    assert [cycle.metrics.row(Instance("t", "sink", j)).arrived for j in range(2)] == [30, 12]


def test_rows_to_a_removed_instance_are_not_in_the_matrix() -> None:
    totals = CycleTotals()
    totals.add(
        seen(sent=(TrafficReport("t", "source", "sink", 0, 5, 9), TrafficReport("t", "source", "sink", 0, 1, 2)))
    )
    assert taken(totals).traffic[0].rows.tolist() == [[0, 2]]


def test_latency_is_merged_over_sinks_and_late_rows_are_counted() -> None:
    totals = CycleTotals()
    some = LatencyReport("t", "sink", 0, "due", Histogram.of([10, 20]))
    others = LatencyReport("t", "sink", 1, "due", Histogram.of([30, 40_000]))
    totals.add(seen(meter("sink", 0, emitted=2), meter("sink", 1, emitted=2), latencies=(some, others)))
    (told,) = taken(totals).topologies
    assert told.latency_due is not None
    assert (told.epoch, told.completed_rows, told.late_rows, told.latency_due.p50) == (4, 4, 1, 20)
    assert told.latency_read is None


def test_a_source_that_does_not_know_which_rows_are_due_has_no_known_backlog() -> None:
    totals = CycleTotals()
    totals.add(seen(meter("source", 0, arrived=5, executed=5, arrived_known=0)))
    (told,) = taken(totals).topologies
    assert not told.backlog_known


def test_nodes_have_the_cpu_and_memory_of_their_executors() -> None:
    totals = CycleTotals()
    totals.add(seen())
    totals.add(seen())
    one, two = taken(totals).nodes
    assert (one.node, one.cpu_used_s, one.memory_used_mb) == ("node-1", 0.5, 3.0)
    assert (two.node, two.cpu_used_s) == ("node-2", 0.0)


def test_a_topology_that_does_not_run_has_no_metrics() -> None:
    totals = CycleTotals()
    totals.add(seen(meter("source", 0, executed=5)))
    cycle = taken(totals, {})
    assert cycle.metrics.instances == ()
    assert cycle.topologies == ()
