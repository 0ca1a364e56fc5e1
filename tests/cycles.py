"""Test data for the stages: topologies, snapshots with given numbers, and histories of them."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from barograph.model import (
    Allotment,
    Cycle,
    Demand,
    Edge,
    EdgeTraffic,
    Forecast,
    Grouping,
    Instance,
    InstanceMetrics,
    Metrics,
    Node,
    NodeMetrics,
    Operator,
    Placement,
    Plan,
    Slot,
    Snapshot,
    Topology,
    Worker,
)

# operator -> the sum over its instances, or one value for each; for several topologies, topology -> that
Numbers = Mapping[str, Any]

WORD_COUNT = Topology(
    "wc",
    (Operator("spout", 4, source=True), Operator("split", 4), Operator("count", 4, stateful=True)),
    (Edge("spout", "split"), Edge("split", "count", Grouping.FIELDS)),
)


def chain(*operators: Operator, name: str = "t", grouping: Grouping = Grouping.SHUFFLE, level: int = 2) -> Topology:
    edges = tuple(Edge(a.name, b.name, grouping) for a, b in pairwise(operators))
    return Topology(name, operators, edges, level=level)


def nodes(count: int = 3, cpu_pct: float = 600.0, slots: int = 1, seats: int | None = None) -> tuple[Node, ...]:
    return tuple(Node(f"n{i + 1}", cpu_pct, slots, seats) for i in range(count))


def workers_on(cluster: Sequence[Node], seats: int = 1) -> tuple[Worker, ...]:
    """A worker in every slot, with the seats of its node, or the given number if it has none."""
    return tuple(Worker(Slot(n.name, k), f"{n.name}-{k}", n.seats or seats) for n in cluster for k in range(n.slots))


def seen(
    topology: Topology | Sequence[Topology],
    numbers: Numbers,
    *,
    cluster: tuple[Node, ...] | None = None,
    cycle_s: float = 10.0,
    at_s: float = 0.0,
    placement: Placement | None = None,
    traffic: tuple[EdgeTraffic, ...] = (),
    node_metrics: tuple[NodeMetrics, ...] = (),
    seats: int = 100,
) -> Snapshot:
    """A snapshot. Numbers of an operator are its sum, spread evenly, or one value for each instance."""
    topologies = (topology,) if isinstance(topology, Topology) else tuple(topology)
    rows: dict[Instance, InstanceMetrics] = {}
    for t in topologies:
        mine: Numbers = numbers if isinstance(topology, Topology) else numbers[t.name]
        for operator, value in mine.items():
            count = t.operator(operator).parallelism
            each = spread(value, count) if isinstance(value, InstanceMetrics) else value
            rows |= {Instance(t.name, operator, i): m for i, m in enumerate(each)}
    cluster = nodes() if cluster is None else cluster
    return Snapshot(
        at_s,
        cycle_s,
        cluster,
        topologies,
        workers_on(cluster, seats),
        placement or Placement(),
        Metrics.of(rows),
        traffic,
        node_metrics,
    )


def spread(total: InstanceMetrics, count: int) -> list[InstanceMetrics]:
    names = ("arrived", "executed", "emitted", "pending", "cpu_s", "busy_s", "idle_s", "blocked_s")
    return [InstanceMetrics(**{n: getattr(total, n) / count for n in names})] * count


def work(
    arrived: float, executed: float | None = None, *, out: float = 1.0, ms: float = 1.0, pending: float = 0.0
) -> InstanceMetrics:
    """Rows that arrived and were executed, rows out per row, and CPU milliseconds of a row."""
    done = arrived if executed is None else executed
    return InstanceMetrics(arrived, done, done * out, pending, done * ms / 1000, done * ms / 1000)


def remembered(
    snapshot: Snapshot, demand: Demand | None = None, allotment: Allotment | None = None, plan: Plan | None = None
) -> Cycle:
    return Cycle(snapshot, Forecast(()), demand or Demand(()), allotment or Allotment(), plan or Plan())


def word_count_cycles() -> list[Snapshot]:
    """The five cycles of the worked prediction: spout -> split -> count, with split falling behind at the end."""
    found = []
    for k, done in enumerate((1000, 1100, 1200, 1250, 1250)):
        due = 1000.0 + 100 * k
        found.append(
            seen(
                WORD_COUNT,
                {
                    "spout": work(due),
                    "split": work(due, done, out=5, ms=4),
                    "count": work(5 * done, out=0),
                },
                at_s=10.0 * k,
            )
        )
    return found


_rows = st.floats(0, 1e6, allow_nan=False)


@st.composite
def runs(draw: st.DrawFn, least: int = 1, most: int = 8) -> list[Snapshot]:
    """Any run of word count: any arrivals, any part of them executed, at any cost."""
    found = []
    for k in range(draw(st.integers(least, most))):
        numbers = {}
        for o in WORD_COUNT.operators:
            arrived, executed, emitted, pending = (draw(_rows) for _ in range(4))
            cpu_s = draw(st.floats(0, 40, allow_nan=False))
            busy_s = draw(st.floats(cpu_s, 40, allow_nan=False))
            numbers[o.name] = InstanceMetrics(arrived, executed, emitted, pending, cpu_s, busy_s)
        found.append(seen(WORD_COUNT, numbers, at_s=10.0 * k))
    return found
