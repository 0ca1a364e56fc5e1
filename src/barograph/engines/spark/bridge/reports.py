"""What the plug-in reports, as values, and how they are read from its Arrow message. ``Bridge.scala`` writes it.

Decides nothing; it only knows the form.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

import pyarrow as pa

from barograph.engines.latency import Histogram

ArrowRows = list[dict[str, Any]]  # one dict per Arrow row, read at once into the values below


@dataclass(frozen=True, slots=True)
class Executor:
    """A live executor."""

    id: str
    host: str
    seats: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class OperatorSeen:
    topology: str
    epoch: int
    operator: str
    parallelism: int
    source: bool
    stateful: bool
    fixed_because: str
    repartition: bool  # its parallelism changes with a repartition of its state


@dataclass(frozen=True, slots=True)
class EdgeSeen:
    topology: str
    source: str
    target: str
    grouping: str


@dataclass(frozen=True, slots=True)
class Seated:
    """Where the planner sent an instance of an epoch; ``because`` says why that is not ``wanted``, if it is not."""

    topology: str
    run: str
    epoch: int
    orders: int
    planned_ms: int
    operator: str
    index: int
    executor: str
    wanted: str
    because: str


@dataclass(frozen=True, slots=True)
class LifeReport:
    """One instance in one epoch, as its own thread reported it. ended_ms is 0 while it runs."""

    topology: str
    run: str
    epoch: int
    operator: str
    index: int
    executor: str
    pid: int
    tid: int
    started_ms: int
    ended_ms: int
    rows_read: int


@dataclass(frozen=True, slots=True)
class MeterReport:
    """One instance since the last call; pending is as of now. arrived_known: its source tells which rows are due."""

    topology: str
    operator: str
    index: int
    arrived: int
    arrived_known: bool
    executed: int
    emitted: int
    pending: int
    cpu_ns: int
    busy_ns: int
    idle_ns: int
    blocked_ns: int


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """Rows that one instance sent to another since the last call."""

    topology: str
    source: str
    target: str
    sender: int
    receiver: int
    rows: int


@dataclass(frozen=True, slots=True)
class LatencyReport:
    """Rows that left the topology at one instance since the last call, by complete time; clock: since due or read."""

    topology: str
    operator: str
    index: int
    clock: str
    histogram: Histogram


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """An executor's process: CPU since the last call, memory now."""

    executor: str
    cpu_ns: int
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class TelemetryReport:
    """Everything since the last call. output: (topology, centisecond since 1970) -> rows that left it."""

    executors: tuple[Executor, ...]
    operators: tuple[OperatorSeen, ...]
    edges: tuple[EdgeSeen, ...]
    seated: tuple[Seated, ...]
    lives: tuple[LifeReport, ...]
    output: Mapping[tuple[str, int], int]
    meters: tuple[MeterReport, ...] = ()
    traffic: tuple[TrafficReport, ...] = ()
    latencies: tuple[LatencyReport, ...] = ()
    processes: tuple[ProcessUse, ...] = ()


def read_report(message: bytes) -> TelemetryReport:
    tables = _tables(message)
    return TelemetryReport(
        executors=tuple(Executor(r["id"], r["host"], r["seats"], r["since_ms"]) for r in tables["executors"]),
        operators=tuple(
            OperatorSeen(
                r["topology"], r["epoch"], r["operator"], r["parallelism"], bool(r["source"]), bool(r["stateful"]),
                r["fixed_because"], bool(r["repartition"]),
            )
            for r in tables["operators"]
        ),
        edges=tuple(EdgeSeen(r["topology"], r["source"], r["target"], r["grouping"]) for r in tables["edges"]),
        # Kept for many epochs, and the same few strings occur in all of them.
        seated=tuple(
            Seated(
                intern(r["topology"]), intern(r["run"]), r["epoch"], r["orders"], r["planned_ms"],
                intern(r["operator"]), r["instance"], intern(r["executor"]), intern(r["wanted"]), intern(r["because"]),
            )
            for r in tables["seated"]
        ),
        lives=tuple(
            LifeReport(
                intern(r["topology"]), intern(r["run"]), r["epoch"], intern(r["operator"]), r["instance"],
                intern(r["executor"]), r["pid"], r["tid"], r["started_ms"], r["ended_ms"], r["rows_read"],
            )
            for r in tables["lives"]
        ),
        output={(r["topology"], r["centisecond"]): r["rows"] for r in tables["output"]},
        meters=tuple(
            MeterReport(
                r["topology"], r["operator"], r["instance"], r["arrived"], bool(r["arrived_known"]), r["executed"],
                r["emitted"], r["pending"], r["cpu_ns"], r["busy_ns"], r["idle_ns"], r["blocked_ns"],
            )
            for r in tables["meters"]
        ),
        traffic=tuple(
            TrafficReport(r["topology"], r["source"], r["target"], r["sender"], r["receiver"], r["rows"])
            for r in tables["traffic"]
        ),
        latencies=_latencies(tables["latency"], tables["latency_sums"]),
        processes=tuple(ProcessUse(r["executor"], r["cpu_ns"], r["resident_bytes"]) for r in tables["processes"]),
    )  # fmt: skip


def _latencies(buckets: ArrowRows, sums: ArrowRows) -> tuple[LatencyReport, ...]:
    rows: dict[tuple[str, str, int, str], dict[int, int]] = {}
    for r in buckets:
        rows.setdefault((r["topology"], r["operator"], r["instance"], r["clock"]), {})[r["bucket"]] = r["rows"]
    return tuple(
        LatencyReport(*key, Histogram(rows[key], r["sum_ms"], r["max_ms"]))
        for r in sums
        if (key := (r["topology"], r["operator"], r["instance"], r["clock"])) in rows
    )


def _tables(message: bytes) -> dict[str, ArrowRows]:
    found: dict[str, ArrowRows] = {}
    at = 0

    def take() -> bytes:
        nonlocal at
        (length,) = struct.unpack_from(">i", message, at)
        piece = message[at + 4 : at + 4 + length]
        at += 4 + length
        return piece

    while at < len(message):
        name = take().decode()
        found[name] = pa.ipc.open_stream(take()).read_all().to_pylist()
    return found
