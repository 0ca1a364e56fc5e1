"""A plug-in without Spark, for unit tests of the engine: topologies on executors, and what was asked of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from barograph.engines.spark import observer
from barograph.engines.spark.bridge.reports import Executor, LifeReport, OperatorSeen, Seated, TelemetryReport
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.limits.instance_limits import InstanceLimits

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

    hosts: of the executors, which have ``seats`` seats each. ordered: the orders, latest last."""

    topologies: dict[str, FakeTopology] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=lambda: {"0": "host-0", "1": "host-1"})
    seats: int = 8
    ordered: list[dict[str, Any]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    holds: set[str] = field(default_factory=set)
    fail_await_held: bool = False

    def observe(self) -> TelemetryReport:
        found = self.topologies.items()
        each = [(name, t, o) for name, t in found for o in t.operators]
        seats = [(name, t, o, i, e) for name, t, o in each for i, e in enumerate(o.executors)]
        return TelemetryReport(
            executors=tuple(Executor(e, host, self.seats, LONG_AGO_MS) for e, host in self.hosts.items()),
            operators=tuple(
                OperatorSeen(
                    topology=name, epoch=t.epoch, operator=o.name, parallelism=len(o.executors), source=o.source,
                    stateful=o.stateful, fixed_because="it has state" if o.stateful else "", repartition=o.stateful,
                )
                for name, t, o in each
            ),
            edges=(),
            seated=tuple(
                Seated(name, t.run, t.epoch, 0, LONG_AGO_MS, o.name, i, e, "", "") for name, t, o, i, e in seats
            ),
            lives=tuple(
                LifeReport(
                    topology=name, run=t.run, epoch=t.epoch, operator=o.name, index=i, executor=e, pid=1, tid=1,
                    started_ms=LONG_AGO_MS, ended_ms=0, rows_read=0,
                )
                for name, t, o, i, e in seats
            ),
            output={},
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

    def release(self, executors: Iterable[str]) -> bool:
        self.released += executors
        return True

    def rest(self, topologies: Iterable[str]) -> None: ...

    def pace(self, lengths_ms: Mapping[str, int]) -> None: ...


def engine_on(plugin: FakePlugin, monkeypatch: pytest.MonkeyPatch, limits: InstanceLimits | None = None) -> SparkEngine:
    monkeypatch.setattr(observer, "Bridge", lambda _spark: plugin)
    return SparkEngine(cast(SparkSession, None), {}, limits=limits)
