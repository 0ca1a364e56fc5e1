"""An application in Java without a JVM: its main is a function of Python, its queries end when it says so."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from py4j.protocol import Py4JError, Py4JJavaError
from tests.engines.spark.query.fake_engine import FakeEngine

from barograph.engines.spark.bridge.telemetry import EpochSeen
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.query.start.first_size import PARTITIONS, PLANNED
from barograph.submit.jvm_deaths.main_deaths import Attached
from barograph.submit.jvm_program import JvmProgram

ID = "6e7b1f0e-0000-4000-8000-0123456789ab"


def run_id(number: int) -> str:
    return f"6e7b1f0e-0000-4000-9000-{number:012d}"


def error_of(name: str, run: str, cause: str) -> str:
    """As Java prints Spark's exception of a query."""
    named = f"{name} " if name else ""
    return (
        f"org.apache.spark.sql.streaming.StreamingQueryException: {cause}\n=== Streaming Query ===\n"
        f"Identifier: {named}[id = {ID}, runId = {run}]\nCurrent Committed Offsets: {{}}\n\tat org.apache.spark.Any\n"
    )


class ThrownError(Py4JJavaError):  # type: ignore[misc]  # Py4J has no types
    def __init__(self, text: str) -> None:
        super().__init__("", SimpleNamespace(_target_id="o1", getCause=lambda: None, text=text))


class Option:
    """Scala's."""

    def __init__(self, value: object) -> None:
        self.get, self.isDefined = lambda: value, lambda: value is not None


class JavaQuery:
    def __init__(self, streams: "Streams", name: str | None, number: int) -> None:
        self.name, self.id, self.run = (lambda: name), (lambda: ID), run_id(number)
        self.runId = lambda: self.run
        self.refuses_to_stop = False
        self.error: str | None = None
        self._name, self._streams = name, streams

    def stop(self) -> None:
        if self.refuses_to_stop:
            raise Py4JError("it does not stop in time")
        self._streams.ended(self)

    def die(self, cause: str) -> None:
        self.error = error_of(self._name or "", self.run, cause)
        self._streams.ended(self)

    def exception(self) -> Option:
        return Option(None if self.error is None else SimpleNamespace(text=self.error))


class Streams:
    """Spark's manager of queries: it keeps the last error until it is reset."""

    def __init__(self) -> None:
        self.running: list[JavaQuery] = []
        self.started = 0
        self._last: tuple[str | None] | None = None

    def active(self) -> list[JavaQuery]:
        return list(self.running)

    def resetTerminated(self) -> None:  # noqa: N802  # Spark's name
        self._last = None

    def start(self, name: str | None) -> JavaQuery:
        self.started += 1
        self.running.append(query := JavaQuery(self, name, self.started))
        return query

    def ended(self, query: JavaQuery) -> None:
        self.running.remove(query)
        if self._last is None or query.error is not None:
            self._last = (query.error,)

    def await_any(self) -> None:
        """What ended a query is thrown; here the program waits for nothing else."""
        if self._last is not None and self._last[0] is not None:
            raise ThrownError(self._last[0])


@dataclass
class SeenEngine(FakeEngine):
    """Knows the epochs that it is told of."""

    seen: dict[str, list[EpochSeen]] = field(default_factory=dict)

    def plans(self, topology: str, run: str, *epochs: int) -> None:
        self.seen.setdefault(topology, []).extend(EpochSeen(run, e, 0, 1) for e in epochs)

    def epochs(self, topology: str) -> list[Any]:
        return self.seen.get(topology, [])


class Application(JvmProgram):
    """main: called with the application. engine: None: it is not supervised."""

    def __init__(self, main: Callable[["Application"], None], engine: FakeEngine | None = None) -> None:
        self.called, self.said, self.streams = 0, list[str](), Streams()
        self.conf = {PARTITIONS: "200"}
        self._java_conf = SimpleNamespace(get=self.conf.get, set=self.conf.__setitem__)
        self._main, self._say, self._body = "counts.Main", self.said.append, main
        self._supervisor, self._closing, self._tried = None, threading.Event(), threading.Event()
        self._settings, self._calls, self._call, self._called_s = {}, 0, 0, 0.0
        self._attached = None if engine is None else Attached(cast(SparkEngine, engine), PLANNED)
        self._tried.set()

    def _session(self) -> Any:
        context = SimpleNamespace(isStopped=lambda: False)
        streams, conf = self.streams, self._java_conf
        return SimpleNamespace(sparkContext=lambda: context, streams=lambda: streams, conf=lambda: conf)

    def _text_of(self, thrown: Any) -> str:
        return str(thrown.text)

    def _call_main(self) -> None:
        self.called += 1
        self._body(self)
