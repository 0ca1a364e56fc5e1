"""What was seen in one cycle. All counts are differences over the cycle, never running totals.

Columns are numpy arrays, one row per instance, because clusters have tens of thousands of instances; they are
read-only, so a Metrics is in effect a frozen value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from barograph.model.checks import BadInput, require, require_number
from barograph.model.topology import Instance

Column = NDArray[np.float64]
COLUMNS = ("arrived", "executed", "emitted", "pending", "cpu_s", "busy_s", "idle_s", "blocked_s", "throttled_s")


@dataclass(frozen=True, slots=True)
class InstanceMetrics:
    """One instance, one cycle. pending: all ever sent to it less all ever executed; for a source its backlog.
    throttled_s: time for which its CPU limit held it back, which is part of busy_s."""

    arrived: float = 0.0
    executed: float = 0.0
    emitted: float = 0.0
    pending: float = 0.0
    cpu_s: float = 0.0
    busy_s: float = 0.0
    idle_s: float = 0.0
    blocked_s: float = 0.0
    throttled_s: float = 0.0

    def true_rate(self) -> float | None:
        """Rows a second it could execute if it never waited; None where it did no work."""
        return self.executed / self.busy_s if self.busy_s > 0 else None


@dataclass(frozen=True, eq=False)
class Metrics:
    """Every instance's cycle, as columns in the order of ``instances``. Missing columns are zeros.

    age_s: how long ago the worker that runs the instance last reported; zeros where the engine always knows.
    """

    instances: tuple[Instance, ...]
    columns: Mapping[str, Column] = field(default_factory=dict)
    age_s: Column = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        columns: dict[str, Column] = {}
        for name in self.columns:
            require(name in COLUMNS, f"metrics: unknown column {name!r}")
        for name in COLUMNS:
            column = np.array(self.columns.get(name, np.zeros(len(self.instances))), dtype=np.float64)
            require(column.shape == (len(self.instances),), f"metrics: {name} has {column.shape} values")
            require(bool(np.isfinite(column).all()), f"metrics: {name} has a value that is not a number")
            require(name == "pending" or bool((column >= 0).all()), f"metrics: {name} has a negative value")
            column.setflags(write=False)
            columns[name] = column
        object.__setattr__(self, "columns", columns)
        age_s = np.array(self.age_s if len(self.age_s) else np.zeros(len(self.instances)), dtype=np.float64)
        require(age_s.shape == (len(self.instances),), f"metrics: age_s has {age_s.shape} values")
        require(bool(np.isfinite(age_s).all()) and bool((age_s >= 0).all()), "metrics: age_s has an undefined value")
        age_s.setflags(write=False)
        object.__setattr__(self, "age_s", age_s)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Metrics):
            return NotImplemented
        same = all(np.array_equal(self.columns[name], other.columns[name]) for name in COLUMNS)
        return self.instances == other.instances and same and np.array_equal(self.age_s, other.age_s)

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    @staticmethod
    def of(rows: Mapping[Instance, InstanceMetrics]) -> "Metrics":
        return Metrics(
            tuple(rows),
            {name: np.array([getattr(r, name) for r in rows.values()], dtype=np.float64) for name in COLUMNS},
        )

    @cached_property
    def _position(self) -> dict[Instance, int]:
        return {instance: i for i, instance in enumerate(self.instances)}

    @cached_property
    def rows_of_operator(self) -> dict[tuple[str, str], NDArray[np.int64]]:
        """(topology, operator) -> positions of its instances in the columns, index rising."""
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for position, i in enumerate(self.instances):
            found.setdefault((i.topology, i.operator), []).append((i.index, position))
        return {key: np.array([p for _, p in sorted(rows)], dtype=np.int64) for key, rows in found.items()}

    @cached_property
    def operator_sums(self) -> tuple[tuple[tuple[str, str], ...], Column]:
        """Every operator seen, and the sum over its instances: one row per operator, one column per name of COLUMNS."""
        rows = self.rows_of_operator
        if not rows:
            return (), np.zeros((0, len(COLUMNS)))
        ends = np.cumsum([len(r) for r in rows.values()])
        values = np.stack([self.columns[name] for name in COLUMNS], axis=1)[np.concatenate(list(rows.values()))]
        return tuple(rows), np.add.reduceat(values, np.concatenate(([0], ends[:-1])), axis=0)

    def row(self, instance: Instance) -> InstanceMetrics:
        position = self._position.get(instance)
        if position is None:
            return InstanceMetrics()
        return InstanceMetrics(**{name: float(self.columns[name][position]) for name in COLUMNS})

    def of_operator(self, topology: str, operator: str) -> InstanceMetrics:
        """The sum over the operator's instances; zeros where it was not seen."""
        rows = self.rows_of_operator.get((topology, operator))
        if rows is None:
            return InstanceMetrics()
        return InstanceMetrics(**{name: float(self.columns[name][rows].sum()) for name in COLUMNS})


@dataclass(frozen=True, eq=False)
class EdgeTraffic:
    """rows[i, j]: rows that instance i of source sent to instance j of target in the cycle.

    A uniform or factorised matrix may be a broadcast view, so that large edges cost no memory.
    age_s: how long ago a worker that runs a sender last reported; of several, the longest.
    """

    topology: str
    source: str
    target: str
    rows: NDArray[np.float64]
    age_s: float = 0.0

    def __post_init__(self) -> None:
        require_number(f"traffic {self.topology}: {self.source}->{self.target}: age_s", self.age_s)
        require(self.rows.ndim == 2, f"traffic {self.source}->{self.target}: rows must be a matrix")
        ok = bool(np.isfinite(self.rows).all()) and bool((self.rows >= 0).all())
        if not ok:
            raise BadInput(f"traffic {self.topology}: {self.source}->{self.target} has a negative or undefined rate")
        view = self.rows.view()
        view.setflags(write=False)
        object.__setattr__(self, "rows", view)

    @cached_property
    def total(self) -> float:
        """All rows of the edge in the cycle."""
        return float(self.rows.sum())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EdgeTraffic):
            return NotImplemented
        mine, theirs = ((e.topology, e.source, e.target, e.age_s) for e in (self, other))
        return mine == theirs and np.array_equal(self.rows, other.rows)

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """A node's cycle. age_s: how long ago the worker there last reported; of several, the longest."""

    node: str
    cpu_used_s: float = 0.0
    memory_used_mb: float = 0.0
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Complete time of the rows that ended in the cycle, in milliseconds."""

    mean: float
    p50: float
    p99: float
    p999: float
    max: float


class LatencyKind(StrEnum):
    """What a latency is measured by: the times that each row carries in a column, which is exact, or the record times
    of the source, which is a bound: a row counts as old as the oldest that came with it in a message."""

    COLUMN = "column"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class TopologyMetrics:
    """A topology's cycle. Latency is None where it is not known, which is not 0.

    latency_due, latency_read: by columns of the rows. latency_record: by record times, which need no column.
    backlog_known: whether the source tells what is due; where not, backlog_rows says nothing.
    age_s: how long ago a worker that runs one of its instances last reported; of several, the longest.
    """

    topology: str
    epoch: int = 0
    completed_rows: float = 0.0
    late_rows: float = 0.0
    backlog_rows: float = 0.0
    latency_due: Latency | None = None
    latency_read: Latency | None = None
    backlog_known: bool = True
    latency_record: Latency | None = None
    age_s: float = 0.0

    @property
    def latency(self) -> Latency | None:
        """What policies go by: from due by a column if rows have one, else by record times."""
        return self.latency_record if self.latency_due is None else self.latency_due

    def of_kind(self, kind: LatencyKind) -> Latency | None:
        return self.latency_due if kind is LatencyKind.COLUMN else self.latency_record

    @property
    def latency_kind(self) -> LatencyKind | None:
        """Of ``latency``. None if no row was timed: none ended, or neither time is known."""
        if self.latency_due is not None:
            return LatencyKind.COLUMN
        return None if self.latency_record is None else LatencyKind.RECORD
