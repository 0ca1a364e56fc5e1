"""An engine, queries and a writer without Spark, for unit tests of supervision."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.bridge.query_run import EndKind, QueryRunEnd
from barograph.model import Node, Slot, Snapshot, Topology, Worker

CHECKPOINT = "/checkpoints/counting"
STOPPED = QueryRunEnd(EndKind.STOPPED)


def died(text: str) -> QueryRunEnd:
    return QueryRunEnd(EndKind.DIED, text)


class FakeRun:
    """One run of a query, in the place of Spark's StreamingQuery."""

    def __init__(self, number: int) -> None:
        self.name, self.id, self.runId = "counting", "the-id", f"run-{number}"
        self.end: QueryRunEnd | None = None
        self.ended = threading.Event()
        self._jsq = SimpleNamespace(recentProgress=list, resolvedCheckpointRoot=lambda: CHECKPOINT)

    @property
    def isActive(self) -> bool:  # noqa: N802  # Spark's name
        return self.end is None

    def end_with(self, end: QueryRunEnd) -> None:
        self.end = self.end or end
        self.ended.set()

    def stop(self) -> None:
        self.end_with(STOPPED)

    def exception(self) -> Exception | None:
        return RuntimeError(self.end.error) if self.end is not None and self.end.died else None


@dataclass
class FakeEngine:
    """Every run is up at once, unless ``comes_up`` is false. Eight seats, and more if ``grows``. errors: what its next
    calls raise, one each. ends_at_start: why every executor ends as it starts, so that none is there. next_run: the one
    that was started in the place of another, past its handle."""

    alive: bool = True
    comes_up: bool = True
    grows: bool = False
    ends_at_start: str = ""
    next_run: str = ""
    errors: list[Exception] = field(default_factory=list)
    restartable: set[str] = field(default_factory=set)
    held: Callable[[], bool] = lambda: True
    runs: list[FakeRun] = field(default_factory=list)
    let_go: list[str] = field(default_factory=list)
    leases: list[tuple[str, bool]] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)

    seats: int = 8
    epoch: int = 0
    shape: Topology | None = None
    smaller: list[tuple[dict[str, int], dict[str, int]]] = field(default_factory=list)
    conf: dict[str, str] = field(default_factory=lambda: {"spark.sql.shuffle.partitions": "200"})
    started_with: list[str] = field(default_factory=list)

    def present(self, _topology: str) -> Any:
        """The first epoch of the present run: nothing is ever committed."""
        run = self.runs[-1]
        return SimpleNamespace(
            run=run.runId, epoch=self.epoch, planned_ms=1, is_up=run.isActive and self.comes_up, lives={}
        )

    def can_grow(self) -> bool:
        return self.grows

    def lives(self) -> bool:
        return self.alive

    def refresh(self) -> None:
        if not self.alive:
            raise ConnectionRefusedError("the gateway is gone")
        if self.errors:
            raise self.errors.pop(0)

    def living(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if not self.alive:
            raise ConnectionRefusedError("the gateway is gone")
        return (() if self.ends_at_start else ("0", "1")), ()

    def where(self, executor: str) -> str:
        return f"executor {executor}"

    def epochs(self, _topology: str) -> list[Any]:
        return [self.present(_topology)]

    def output(self, _topology: str) -> dict[int, int]:
        return {}

    def stillborn(self) -> str:
        return self.ends_at_start

    def free_seats(self, _topology: str) -> int:
        return 8

    def fit(self, _topology: str, _seats: int | None) -> int:
        return 4 if self.comes_up else 0

    def planned(self, _topology: str) -> Topology | None:
        return self.shape

    def cluster(self) -> Snapshot:
        return Snapshot(0.0, 1.0, (Node("n", 200.0, 1, 8),), (), (Worker(Slot("n", 0), "0", 8),))

    def begin_smaller(self, _topology: str, wanted: Mapping[str, int], given: Mapping[str, int]) -> None:
        self.smaller.append((dict(wanted), dict(given)))

    def end_epoch(self, topology: str) -> None:
        self.cut.append(topology)

    def hold(self, _topology: str) -> bool:
        return self.held()

    def release_hold(self, topology: str) -> None:
        self.let_go.append(topology)

    def await_end(self, query: FakeRun, timeout_s: float) -> QueryRunEnd | None:
        query.ended.wait(min(timeout_s, 0.01))
        if not self.alive:
            raise ConnectionRefusedError("the gateway is gone")
        return query.end

    def successor(self, _query: FakeRun, timeout_s: float) -> str:
        assert timeout_s > 0
        return self.next_run

    def keep_lease(self, checkpoint: str, is_kept: bool) -> None:
        self.leases.append((checkpoint, is_kept))

    def set_restartable(self, topology: str, query: object) -> None:
        if query is None:
            self.restartable.discard(topology)
        else:
            self.restartable.add(topology)


class FakeJavaWriter:
    """As far as its trigger and its options are asked for."""

    def __init__(self, trigger: str = "RealTimeTrigger") -> None:
        self.options: dict[str, str] = {}
        named = SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: trigger))
        fields = {"trigger": named, "extraOptions": SimpleNamespace(get=self._option)}
        self.getClass = lambda: SimpleNamespace(
            getDeclaredField=lambda name: SimpleNamespace(setAccessible=lambda _: None, get=lambda _: fields[name])
        )

    def _option(self, name: str) -> Any:
        """In the place of Scala's Option."""
        found = self.options.get(name.lower())
        return SimpleNamespace(isDefined=lambda: found is not None, get=lambda: found)


class FakeWriter(DataStreamWriter):
    """starts: what each start raises; None: it starts. The last one is repeated."""

    def __init__(self, engine: FakeEngine, starts: list[Exception | None]) -> None:
        self._engine, self._starts = engine, starts
        conf = SimpleNamespace(get=engine.conf.get, set=engine.conf.__setitem__)
        self._df = cast(Any, SimpleNamespace(sparkSession=SimpleNamespace(conf=conf)))
        self._jwrite = cast(Any, FakeJavaWriter())

    def option(self, key: str, value: Any) -> "FakeWriter":
        cast(Any, self._jwrite).options[key.lower()] = str(value)
        return self

    def start(self, *_args: object, **_options: object) -> Any:
        error = self._starts.pop(0) if len(self._starts) > 1 else self._starts[0]
        if error is not None:
            raise error
        self._engine.started_with.append(self._engine.conf["spark.sql.shuffle.partitions"])
        self._engine.runs.append(FakeRun(len(self._engine.runs) + 1))
        return self._engine.runs[-1]
