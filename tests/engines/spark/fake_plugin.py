"""A plug-in without Spark, for unit tests of the engine: topologies on executors, and what was asked of them."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from tests.engines.spark.bridge.messages import message

from barograph.engines.spark import observer
from barograph.engines.spark.bridge.message import Message
from barograph.engines.spark.bridge.reports import LastReport
from barograph.engines.spark.bridge.running_totals import METERS
from barograph.engines.spark.engine import SparkEngine
from barograph.model import Instance

LONG_AGO_MS = 1000


@dataclass
class FakeOperator:
    """executors: of each of its instances."""

    name: str
    executors: tuple[str, ...]
    stateful: bool = False
    source: bool = False


@dataclass
class FakeTopology:
    operators: tuple[FakeOperator, ...]
    run: str = "run-1"
    epoch: int = 0


@dataclass
class FakePlugin:
    """Takes the place of ``Bridge``. Epochs end at once when they are cut.

    hosts: of the executors, which have ``seats`` seats each. ordered: the orders, latest last. meters: running totals
    of all instances, where they are not 0. enforces: the way in which executors hold limits, and what they say against
    it. shares: those that were ordered, latest last."""

    topologies: dict[str, FakeTopology] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=lambda: {"0": "host-0", "1": "host-1"})
    seats: int = 8
    ordered: list[dict[str, Any]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    wanted: list[int | None] = field(default_factory=list)
    holds: set[str] = field(default_factory=set)
    fail_await_held: bool = False
    meters: dict[str, list[int]] = field(default_factory=dict)
    pods: bool = False
    looks: int = 0
    asked_for_reports: int = 0
    leaving: tuple[str, ...] = ()
    enforces: tuple[str, str] = ("cooperative", "")
    shares: list[dict[Instance, tuple[float, float]]] = field(default_factory=list)

    def warm(self, *_: object) -> bool:
        return True

    def observe(self, cursor: int, meters: bool) -> Message:  # noqa: ARG002  # everything is sent each time
        self.looks += 1
        each = [(at, t, o) for at, t in enumerate(self.topologies.values()) for o in t.operators]
        seats = [(at, o.name, i, e) for at, t, o in each for i, e in enumerate(o.executors)]
        count, names = len(seats), list(self.topologies)
        runs, numbers = ([getattr(t, field) for t in self.topologies.values()] for field in ("run", "epoch"))
        return message(
            {
                "executor_id": list(self.hosts), "executor_host": list(self.hosts.values()),
                "executor_seats": [self.seats] * len(self.hosts),
                "executor_cores": [self.seats] * len(self.hosts), "executor_group": [""] * len(self.hosts),
                "executor_group_cores": [0] * len(self.hosts), "executor_allowed_cores": [0] * len(self.hosts),
                "executor_enforces": [self.enforces[0]] * len(self.hosts),
                "executor_enforces_because": [self.enforces[1]] * len(self.hosts),
                "executor_cpu_ns": [0] * len(self.hosts), "executor_resident_bytes": [0] * len(self.hosts),
                "executor_age_ms": [0] * len(self.hosts),
                "topology": range(len(names)), "present": [1] * len(names), "read": [0] * count,
                "layout_topology": range(len(names)), "layout_name": names, "instance_id": range(count),
                "operator_layout": [at for at, _, _ in each], "operator_name": [o.name for _, _, o in each],
                "operator_parallelism": [len(o.executors) for _, _, o in each],
                "operator_source": [int(o.source) for _, _, o in each],
                "operator_stateful": [int(o.stateful) for _, _, o in each],
                "operator_fixed_because": ["it has state" if o.stateful else "" for _, _, o in each],
                "operator_repartition": [int(o.stateful) for _, _, o in each],
                "epoch_topology": names, "epoch_run": runs, "epoch_number": numbers,
                "epoch_orders": [0] * len(names), "epoch_planned_ms": [LONG_AGO_MS] * len(names),
                "seat_epoch": [at for at, *_ in seats], "seat_operator": [o for _, o, _, _ in seats],
                "seat_instance": [i for *_, i, _ in seats], "seat_executor": [e for *_, e in seats],
                "seat_wanted": [""] * count, "seat_because": [""] * count,
                "life_topology": [names[at] for at, *_ in seats], "life_run": [runs[at] for at, *_ in seats],
                "life_epoch": [numbers[at] for at, *_ in seats], "life_operator": [o for _, o, _, _ in seats],
                "life_instance": [i for *_, i, _ in seats], "life_executor": [e for *_, e in seats],
                "life_pid": [1] * count, "life_tid": [1] * count, "life_started_ms": [LONG_AGO_MS] * count,
                "life_ended_ms": [0] * count, "life_read": [0] * count,
                **{name: self.meters.get(name, [0] * count) for name in METERS}, "traffic": [],
            }
        )  # fmt: skip

    def order(
        self,
        topologies: Mapping[str, tuple[Mapping[str, int], Iterable[tuple[str, int, str]]]],
        cut: Iterable[str],
        hold_s: Mapping[str, float] = MappingProxyType({}),
    ) -> dict[str, int]:
        cuts = [name for name in cut if name in self.topologies]
        orders = {name: (dict(counts), list(places)) for name, (counts, places) in topologies.items()}
        self.ordered.append({"topologies": orders, "cut": cuts, "hold": dict(hold_s)})
        self.holds |= hold_s.keys()
        return {name: self.topologies[name].epoch for name in cuts}

    def await_epoch_after(self, topology: str, epoch: int, timeout_s: float) -> int | None:  # noqa: ARG002
        return epoch + 1

    def await_held(self, topology: str, timeout_s: float) -> bool:  # noqa: ARG002
        if self.fail_await_held:
            raise ConnectionResetError("the gateway is gone")
        return topology in self.holds

    def release_hold(self, topology: str) -> None:
        self.holds.discard(topology)

    def release(self, executors: Iterable[str], left: int | None) -> bool:
        self.released += executors
        self.wanted.append(left)
        return True

    def want(self, count: int | None) -> None:
        self.wanted.append(count)

    def last_reports(self) -> tuple[dict[str, LastReport], tuple[str, ...]]:
        self.asked_for_reports += 1
        return {executor: LastReport(0.1) for executor in self.hosts}, self.leaving

    def rest(self, topologies: Iterable[str]) -> None: ...

    def pace(self, lengths_ms: Mapping[str, int]) -> None: ...

    def share(self, shares: Mapping[Instance, tuple[float, float]]) -> None:
        self.shares.append(dict(shares))


def engine_on(
    plugin: FakePlugin,
    monkeypatch: pytest.MonkeyPatch,
    now: Callable[[], float] = time.monotonic,
) -> SparkEngine:
    monkeypatch.setattr(observer, "Bridge", lambda _spark: plugin)
    return SparkEngine(cast(SparkSession, None), {}, now)
