"""How running totals become the metrics of a cycle: by differences, of which each observer takes its own."""

from collections.abc import Sequence

import numpy as np
import pytest
from tests.engines.spark.bridge.messages import Columns, layouts, message

from barograph.engines.latency import bucket_of
from barograph.engines.spark.bridge.layout import read_layouts
from barograph.engines.spark.bridge.running_totals import METERS, CycleMetrics, RunningTotals, cycle_metrics
from barograph.engines.spark.bridge.telemetry import Telemetry
from barograph.model import Instance, LatencyKind

NODES = {"7": "node-1", "8": "node-2"}
SINKS = (2, 3)


class PlugIn:
    """Tells totals of a topology ``t`` with one source and some sinks."""

    def __init__(self) -> None:
        self._telemetry, self._executors = Telemetry(), {"executor_id": ["7", "8"], "executor_host": ["a", "b"]}
        self._layout: Columns = {}
        self.lay_out(SINKS)

    def lay_out(self, sinks: Sequence[int]) -> None:
        self._layout = layouts((5, "t", {"source": 1, "sink": len(sinks)}, [("source", "sink")], [1, *sinks]))
        self._count = 1 + len(sinks)

    def tell(
        self, sent: Sequence[int], cpu_ns: int = 0, more: Columns | None = None, **columns: Sequence[int]
    ) -> RunningTotals:
        zeros = {name: [0] * self._count for name in METERS} | {"arrived_known": [1] * self._count}
        found = message(
            {
                **self._layout, **self._executors, "executor_seats": [1, 1], "executor_cores": [1, 1],
                "executor_group": ["", ""], "executor_group_cores": [0, 0], "executor_allowed_cores": [0, 0],
                "executor_enforces": ["", ""], "executor_enforces_because": ["", ""],
                "topology": [5], "present": [1], "read": [0] * self._count, **zeros, **columns, "traffic": sent,
                "executor_cpu_ns": [cpu_ns, 0], "executor_resident_bytes": [3 << 20, 0], "executor_age_ms": [4000, 200],
                **(more or {}),
            }
        )  # fmt: skip
        self._layout, self._executors = {}, {}
        self._telemetry.take(found)
        return self._telemetry.totals(found, 0.0)


def cycle(now: RunningTotals, before: RunningTotals, epochs: dict[str, int] | None = None) -> CycleMetrics:
    return cycle_metrics(now, before, {"t": 4} if epochs is None else epochs, NODES, 30.0)


def test_two_observers_take_different_differences_of_the_same_totals() -> None:
    plugin, nothing = PlugIn(), RunningTotals(0.0)
    first = plugin.tell([0, 0], arrived=[100, 0, 0], executed=[80, 0, 0], busy_ns=[500_000_000, 0, 0])
    second = plugin.tell(
        [0, 0], arrived=[150, 0, 0], executed=[140, 0, 0], busy_ns=[750_000_000, 0, 0], pending=[10, 0, 0]
    )
    whole, last = (cycle(second, before).metrics.row(Instance("t", "source", 0)) for before in (nothing, first))
    assert (whole.arrived, whole.executed, whole.busy_s, whole.pending) == (150, 140, 0.75, 10)
    assert (last.arrived, last.executed, last.busy_s, last.pending) == (50, 60, 0.25, 10)


def test_rows_sent_to_an_instance_have_arrived_there() -> None:
    plugin = PlugIn()
    before, now = plugin.tell([10, 10]), plugin.tell([40, 22], arrived=[7, 0, 0])
    found = cycle(now, before)
    assert found.traffic[0].rows.tolist() == [[30, 12]]
    assert [found.metrics.row(Instance("t", "sink", j)).arrived for j in range(2)] == [30, 12]
    assert found.metrics.row(Instance("t", "source", 0)).arrived == 7


def test_an_instance_that_was_removed_and_comes_back_makes_no_jump() -> None:
    plugin = PlugIn()
    before = plugin.tell([10, 90], executed=[100, 10, 90])
    plugin.lay_out([2])
    fewer = plugin.tell([15], executed=[115, 15])
    plugin.lay_out([2, 9])  # the plug-in gives it a new id, and counts from 0
    now = plugin.tell([16, 4], executed=[120, 16, 4])
    for earlier, source, sinks, sent in ((before, 20, [6, 4], [6, 4]), (fewer, 5, [1, 4], [1, 4])):
        found = cycle(now, earlier)
        assert found.metrics.row(Instance("t", "source", 0)).executed == source
        assert [found.metrics.row(Instance("t", "sink", j)).executed for j in range(2)] == sinks
        assert found.traffic[0].rows.tolist() == [sent]
    assert cycle(fewer, before).traffic[0].rows.tolist() == [[5]]


def latency(values: Sequence[int], rows: Sequence[int], sum_ms: int, max_ms: int, clock: int = 0) -> Columns:
    return {
        "bucket_topology": [5] * len(values), "bucket_clock": [clock] * len(values),
        "bucket": [bucket_of(v) for v in values], "bucket_rows": rows, "latency_topology": [5],
        "latency_clock": [clock],
        "latency_sum_ms": [sum_ms], "latency_epoch_max_ms": [max_ms], "latency_max_ms": [max_ms],
    }  # fmt: skip


def test_latency_is_of_the_rows_since_the_observer_looked_and_late_rows_are_counted() -> None:
    plugin = PlugIn()
    before = plugin.tell([0, 0], more=latency([10, 20], [1, 1], 30, 20))
    now = plugin.tell([0, 0], emitted=[0, 3, 2], more=latency([20, 30, 40_000], [3, 1, 1], 40_100, 40_000))
    (told,) = cycle(now, before).topologies
    assert told.latency_due is not None
    assert (told.epoch, told.completed_rows, told.late_rows) == (4, 5, 1)
    assert (told.latency_due.p50, told.latency_due.max, told.latency_due.mean) == (20, 40_000, 40_070 / 4)
    assert told.latency_read is None
    (all_rows,) = cycle(now, RunningTotals(0.0)).topologies
    assert all_rows.latency_due is not None
    assert all_rows.latency_due.mean == 40_100 / 6


def test_without_a_column_latency_and_late_rows_are_by_record_times() -> None:
    plugin = PlugIn()
    plugin.tell([0, 0], more=latency([20, 40_000], [3, 1], 40_060, 40_000, clock=2))
    (told,) = cycle(plugin.tell([0, 0]), RunningTotals(0.0)).topologies
    assert (told.latency_due, told.latency_read, told.latency_kind) == (None, None, LatencyKind.RECORD)
    assert told.latency == told.latency_record
    assert told.latency is not None
    assert (told.latency.p50, told.latency.max, told.latency.mean, told.late_rows) == (20, 40_000, 10_015, 1)
    (both,) = cycle(plugin.tell([0, 0], more=latency([10], [4], 40, 10)), RunningTotals(0.0)).topologies
    assert (both.latency, both.latency_kind, both.late_rows) == (both.latency_due, LatencyKind.COLUMN, 0)
    assert both.latency_record == told.latency_record


def test_a_source_that_does_not_know_which_rows_are_due_has_no_known_backlog() -> None:
    plugin = PlugIn()
    (told,) = cycle(plugin.tell([0, 0], arrived_known=[0, 1, 1]), RunningTotals(0.0)).topologies
    assert not told.backlog_known


def test_nodes_have_the_cpu_the_memory_and_the_age_of_their_executors() -> None:
    plugin = PlugIn()
    before = plugin.tell([0, 0], cpu_ns=1_000_000_000)
    one, two = cycle(plugin.tell([0, 0], cpu_ns=1_500_000_000), before).nodes
    assert (one.node, one.cpu_used_s, one.memory_used_mb, one.age_s) == ("node-1", 0.5, 3.0, 4.0)
    assert (two.node, two.cpu_used_s, two.age_s) == ("node-2", 0.0, 0.2)


def test_every_instance_has_the_age_of_its_figures() -> None:
    found = cycle(PlugIn().tell([0, 0], age_ms=[4000, 150, 0]), RunningTotals(0.0))
    assert found.metrics.age_s.tolist() == [4.0, 0.15, 0.0]


@pytest.mark.parametrize(
    ("ages_ms", "edge_s", "topology_s"), [([200, 4000, 0], 0.2, 4.0), ([4000, 150, 0], 4.0, 4.0), ([0, 0, 0], 0, 0)]
)
def test_a_sum_is_as_old_as_the_oldest_report_in_it(ages_ms: list[int], edge_s: float, topology_s: float) -> None:
    found = cycle(PlugIn().tell([0, 0], age_ms=ages_ms), RunningTotals(0.0))
    assert [t.age_s for t in found.traffic] == [edge_s], "what the senders' executors said"
    assert [t.age_s for t in found.topologies] == [topology_s]


def test_each_topology_has_an_age_of_its_own() -> None:
    laid_out = layouts(
        (5, "t", {"a": 1, "b": 1}, [("a", "b")], [1, 2]), (6, "u", {"c": 1, "d": 1}, [("c", "d")], [3, 4])
    )
    columns = {name: np.zeros(4, dtype=np.int64) for name in METERS} | {"age_ms": np.array([1, 2, 3000, 4000])}
    now = RunningTotals(0.0, tuple(read_layouts(message(laid_out))), columns, np.zeros(2, dtype=np.int64))
    found = cycle(now, RunningTotals(0.0), {"t": 1, "u": 1})
    assert [t.age_s for t in found.topologies] == [0.002, 4.0]
    assert [t.age_s for t in found.traffic] == [0.001, 3.0]


def test_a_topology_that_does_not_run_has_no_metrics() -> None:
    found = cycle(PlugIn().tell([0, 0], executed=[5, 0, 0]), RunningTotals(0.0), {})
    assert found.metrics.instances == ()
    assert found.topologies == ()
