"""The two calls between Python and the plug-in: what was seen comes as Arrow, orders go as JSON.

Decides nothing; it only knows the forms. ``Bridge.scala`` is the other end.
"""

import json
import struct
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from sys import intern
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.latency import Histogram
from barograph.model import BadInput

Rows = list[dict[str, Any]]  # one dict per Arrow row, read at once into values below


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
class Life:
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
class Meter:
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
class Sent:
    """Rows that one instance sent to another since the last call."""

    topology: str
    source: str
    target: str
    sender: int
    receiver: int
    rows: int


@dataclass(frozen=True, slots=True)
class Latencies:
    """Rows that left the topology at one instance since the last call, by complete time; clock: since due or read."""

    topology: str
    operator: str
    index: int
    clock: str
    histogram: Histogram


@dataclass(frozen=True, slots=True)
class Process:
    """An executor's process: CPU since the last call, memory now."""

    executor: str
    cpu_ns: int
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything since the last call. output: (topology, 10 ms since 1970) -> rows that left it."""

    executors: tuple[Executor, ...]
    operators: tuple[OperatorSeen, ...]
    edges: tuple[EdgeSeen, ...]
    seated: tuple[Seated, ...]
    lives: tuple[Life, ...]
    output: Mapping[tuple[str, int], int]
    meters: tuple[Meter, ...] = ()
    traffic: tuple[Sent, ...] = ()
    latencies: tuple[Latencies, ...] = ()
    processes: tuple[Process, ...] = ()


class Bridge:
    """The plug-in, from Python."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark._jsparkSession
        jvm = spark._jvm
        assert jvm is not None
        self._bridge = jvm.org.apache.spark.barograph.Bridge
        if "BarographPlugin" not in (spark.conf.get("spark.plugins", "") or ""):
            raise BadInput("this Spark application runs without Barograph's plug-in: see 'barograph conf'")

    def observe(self) -> Seen:
        return read_seen(b64decode(self._bridge.observe(self._session)))

    def order(
        self,
        topologies: Mapping[str, tuple[Mapping[str, int], Iterable[tuple[str, int, str]]]],
        cut: Iterable[str],
        hold_s: Mapping[str, float] = MappingProxyType({}),
    ) -> dict[str, int]:
        """Hand over orders; what is cut is answered with the epoch that ends. hold_s: of those, how long the next epoch
        waits before it begins."""
        message = {
            "topologies": {
                name: {"parallelism": dict(parallelism), "places": [list(p) for p in places]}
                for name, (parallelism, places) in topologies.items()
            },
            "cut": list(cut),
            "hold": {name: int(seconds * 1000) for name, seconds in hold_s.items()},
        }
        answer: dict[str, int] = json.loads(self._bridge.order(json.dumps(message)))
        return answer

    def rest(self, topologies: Iterable[str]) -> None:
        """The sources of these read nothing from now on; the others' read."""
        self._bridge.rest(json.dumps(list(topologies)))

    def pace(self, lengths_ms: Mapping[str, int]) -> None:
        """How long epochs last, the present ones too; who is not named has its trigger's length."""
        self._bridge.pace(json.dumps(dict(lengths_ms)))

    def is_still(self, topology: str, timeout_s: float) -> bool:
        """Whether its sources rest and none of its rows is in flight."""
        return bool(self._bridge.isStill(topology, int(timeout_s * 1000)))

    def flows(self, topology: str, timeout_s: float) -> bool:
        """Whether all instances of its sources run and read."""
        return bool(self._bridge.flows(topology, int(timeout_s * 1000)))

    def await_end(self, query: StreamingQuery, timeout_s: float) -> str:
        """Empty while it lives, "stopped", or "died: " and what killed it."""
        return str(self._bridge.awaitEnd(query._jsq, int(timeout_s * 1000)))

    def await_held(self, topology: str, timeout_s: float) -> bool:
        """Whether a topology that was cut and held is between two epochs within the time; False also when it died."""
        return bool(self._bridge.awaitHeld(topology, int(timeout_s * 1000)))

    def warm(self, topology: str, moves: Iterable[tuple[int, str]], timeout_s: float) -> bool:
        """Prepare executors for instances (by number) that move to them; whether that was done in time."""
        told = json.dumps([list(m) for m in moves])
        return bool(self._bridge.warm(self._session, topology, told, int(timeout_s * 1000)))

    def replace(self, executor: str) -> bool:
        """End an executor; the cluster starts another in its place."""
        return bool(self._bridge.replaceExecutor(self._session, executor))

    def repartition(self, checkpoint: str, count: int) -> str:
        """Split the state of a stopped query over so many instances; empty when done, else why not."""
        return str(self._bridge.repartition(self._session, checkpoint, count))

    def unfinished_repartition(self, checkpoint: str) -> int:
        """How many instances an unfinished repartition was to give; 0 where there is none."""
        return int(self._bridge.unfinishedRepartition(self._session, checkpoint))

    def undo_repartition(self, checkpoint: str) -> str:
        """Forget an unfinished one, so that the query goes on as it was; empty when done, else why not."""
        return str(self._bridge.undoRepartition(self._session, checkpoint))

    def pulse(self, timeout_s: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Executors that answer, and those that the driver counts and that do not."""
        answer = json.loads(self._bridge.pulse(self._session, int(timeout_s * 1000)))
        return tuple(answer["living"]), tuple(answer["silent"])

    def release(self, executors: Iterable[str]) -> bool:
        """End these executors, unless one of them runs a task. Nobody takes their place until ``want_all``."""
        return bool(self._bridge.release(self._session, json.dumps(list(executors))))

    def want_all(self) -> None:
        """Have an executor wherever there is room for one."""
        self._bridge.wantAll(self._session)

    def await_epoch_after(self, topology: str, epoch: int, timeout_s: float) -> int | None:
        """The next epoch's number once it is planned, which is when the one before is committed; None: too late.

        Not above ``epoch`` when the run that was cut has died: the first epoch of its next life is planned then."""
        found = int(self._bridge.awaitEpochAfter(topology, epoch, int(timeout_s * 1000)))
        return found if found >= 0 else None


def read_seen(message: bytes) -> Seen:
    tables = _tables(message)
    return Seen(
        executors=tuple(Executor(r["id"], r["host"], r["seats"], r["since_ms"]) for r in tables["executors"]),
        operators=tuple(
            OperatorSeen(
                r["topology"], r["epoch"], r["operator"], r["parallelism"], bool(r["source"]), bool(r["stateful"]),
                r["fixed_because"], bool(r["repartition"]),
            )
            for r in tables["operators"]
        ),
        edges=tuple(EdgeSeen(r["topology"], r["source"], r["target"], r["grouping"]) for r in tables["edges"]),
        # Kept for many epochs, and the same few words in all of them.
        seated=tuple(
            Seated(
                intern(r["topology"]), intern(r["run"]), r["epoch"], r["orders"], r["planned_ms"],
                intern(r["operator"]), r["instance"], intern(r["executor"]), intern(r["wanted"]), intern(r["because"]),
            )
            for r in tables["seated"]
        ),
        lives=tuple(
            Life(
                intern(r["topology"]), intern(r["run"]), r["epoch"], intern(r["operator"]), r["instance"],
                intern(r["executor"]), r["pid"], r["tid"], r["started_ms"], r["ended_ms"], r["rows_read"],
            )
            for r in tables["lives"]
        ),
        output={(r["topology"], r["tenth"]): r["rows"] for r in tables["output"]},
        meters=tuple(
            Meter(
                r["topology"], r["operator"], r["instance"], r["arrived"], bool(r["arrived_known"]), r["executed"],
                r["emitted"], r["pending"], r["cpu_ns"], r["busy_ns"], r["idle_ns"], r["blocked_ns"],
            )
            for r in tables["meters"]
        ),
        traffic=tuple(
            Sent(r["topology"], r["source"], r["target"], r["sender"], r["receiver"], r["rows"])
            for r in tables["traffic"]
        ),
        latencies=_latencies(tables["latency"], tables["latency_sums"]),
        processes=tuple(Process(r["executor"], r["cpu_ns"], r["resident_bytes"]) for r in tables["processes"]),
    )  # fmt: skip


def _latencies(buckets: Rows, sums: Rows) -> tuple[Latencies, ...]:
    rows: dict[tuple[str, str, int, str], dict[int, int]] = {}
    for r in buckets:
        rows.setdefault((r["topology"], r["operator"], r["instance"], r["clock"]), {})[r["bucket"]] = r["rows"]
    return tuple(
        Latencies(*key, Histogram(rows[key], r["sum_ms"], r["max_ms"]))
        for r in sums
        if (key := (r["topology"], r["operator"], r["instance"], r["clock"])) in rows
    )


def _tables(message: bytes) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
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
