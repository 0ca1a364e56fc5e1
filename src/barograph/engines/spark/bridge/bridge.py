"""The calls from Python into the plug-in: telemetry comes as Arrow (``message``), orders go as JSON.

Decides nothing; it only knows how each call is made. ``Bridge.scala`` is the other end.
"""

import errno
import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barograph.engines.spark.bridge.message import Message
from barograph.engines.spark.bridge.query_run import QueryRunEnd, read_end
from barograph.engines.spark.bridge.reports import GrownTopic, LastReport
from barograph.model import BadInput, Instance

# A thread that asks for the first time opens a connection of its own.
_CANNOT_ASK = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)


class _Methods:
    """The methods of a Java class. Py4J asks the JVM at each use whether there is such a method; this asks once."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        setattr(self, name, found)
        return found


class Bridge:
    """The plug-in, from Python."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark._jsparkSession
        jvm = spark._jvm
        assert jvm is not None
        self._bridge: Any = _Methods(jvm.org.apache.spark.barograph.plugin.Bridge)
        if "BarographPlugin" not in (spark.conf.get("spark.plugins", "") or ""):
            raise BadInput(
                "this Spark session runs without Barograph's plug-in: run the script with 'barograph submit', or make "
                "the session with barograph.configure(SparkSession.builder).getOrCreate()"
            )

        self.pods = str(spark.sparkContext.master).startswith("k8s:")
        """Whether each executor has a host of its own, with a name that is never used again."""

    def lives(self) -> bool:
        """Whether the Spark application still runs."""
        try:
            return not self._session.sparkContext().isStopped()
        except (Py4JError, OSError) as error:  # its JVM is gone, unless this process cannot even ask
            return getattr(error, "errno", None) in _CANNOT_ASK

    def is_local(self) -> bool:
        """Whether the driver is the only executor."""
        return bool(self._session.sparkContext().isLocal())

    def block_port(self) -> int:
        """The driver's port of Spark's block transfer."""
        return int(self._bridge.blockPort())

    def observe(self, cursor: int, meters: bool) -> Message:
        """What is newer than ``cursor``, which is of the last message; 0 for everything. meters: with the totals of
        instances and executors. It changes nothing in the plug-in."""
        return Message(b64decode(self._bridge.observe(self._session, cursor, meters)))

    def order(
        self,
        topologies: Mapping[str, tuple[Mapping[str, int], Iterable[tuple[str, int, str]]]],
        cut: Iterable[str],
        hold_s: Mapping[str, float] = MappingProxyType({}),
    ) -> dict[str, int]:
        """Send orders. Returns the epoch that ends, for each topology that is cut. hold_s: how long the next epoch of
        these waits before it begins."""
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
        """The sources of these topologies read nothing from now on; all other sources read."""
        self._bridge.rest(json.dumps(list(topologies)))

    def pace(self, lengths_ms: Mapping[str, int]) -> None:
        """Set the length of epochs, also of the present ones. A topology that is not named has its trigger's length."""
        self._bridge.pace(json.dumps(dict(lengths_ms)))

    def share(self, shares: Mapping[Instance, tuple[float, float]]) -> None:
        """Exactly these instances are limited from now on: the most each may use, and what is reserved for it."""
        listed: dict[str, list[list[object]]] = {}
        for i, (limit_pct, reserved_pct) in shares.items():
            listed.setdefault(i.topology, []).append([i.operator, i.index, limit_pct, reserved_pct])
        self._bridge.share(json.dumps(listed))

    def enforce(self, way: str) -> None:
        """Hold instances to their limits in this way from now on."""
        self._bridge.enforce(way)

    def is_still(self, topology: str, timeout_s: float) -> bool:
        """Whether its sources rest and none of its rows is in flight."""
        return bool(self._bridge.isStill(topology, int(timeout_s * 1000)))

    def flows(self, topology: str, timeout_s: float) -> bool:
        """Whether all instances of its sources run and read."""
        return bool(self._bridge.flows(topology, int(timeout_s * 1000)))

    def await_end(self, query: StreamingQuery, timeout_s: float) -> QueryRunEnd | None:
        """How this run of the query ended; None when it still runs after the timeout."""
        return read_end(str(self._bridge.awaitEnd(query._jsq, int(timeout_s * 1000))))

    def successor(self, query: StreamingQuery, timeout_s: float) -> str:
        """The run that was started in the place of this one, which has ended; empty if there is none in time."""
        return str(self._bridge.successor(self._session, query._jsq, int(timeout_s * 1000)))

    def await_held(self, topology: str, timeout_s: float) -> bool:
        """Whether a topology that was cut and held is between two epochs in time; False also if it died. If False, it
        is not held any more."""
        return bool(self._bridge.awaitHeld(topology, int(timeout_s * 1000)))

    def release_hold(self, topology: str) -> None:
        """A topology that was to be held, or is held, goes on."""
        self._bridge.releaseHold(topology)

    def warm(self, topology: str, moves: Iterable[tuple[int, str]], timeout_s: float) -> bool:
        """Prepare executors for instances (by index) that move to them. Returns whether that was done in time."""
        message = json.dumps([list(m) for m in moves])
        return bool(self._bridge.warm(self._session, topology, message, int(timeout_s * 1000)))

    def replace(self, executor: str) -> bool:
        """End an executor; the cluster starts another in its place."""
        return bool(self._bridge.replaceExecutor(self._session, executor))

    def repartition(self, checkpoint: str, count: int) -> str:
        """Split the state of a stopped query over ``count`` instances. Returns "" when done, else why not."""
        return str(self._bridge.repartition(self._session, checkpoint, count))

    def unfinished_repartition(self, checkpoint: str) -> int:
        """The number of instances an unfinished repartition was meant to give; 0 if there is none."""
        return int(self._bridge.unfinishedRepartition(self._session, checkpoint))

    def undo_repartition(self, checkpoint: str) -> str:
        """Undo an unfinished repartition, so that the query can go on as before. Returns "" when done, else why not."""
        return str(self._bridge.undoRepartition(self._session, checkpoint))

    def keep_lease(self, checkpoint: str, is_kept: bool) -> None:
        """Whether the lease on a checkpoint stays when its query ends, because it may be started again."""
        self._bridge.keepLease(checkpoint, is_kept)

    def pulse(self, timeout_s: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Executors that answer, and executors that the driver still counts but that do not answer."""
        answer = json.loads(self._bridge.pulse(self._session, int(timeout_s * 1000)))
        return tuple(answer["living"]), tuple(answer["silent"])

    def last_reports(self) -> tuple[dict[str, LastReport], tuple[str, ...]]:
        """Of live executors that have reported; and executors that were decommissioned and still live, which get no
        instances any more."""
        found = json.loads(self._bridge.lastReports(self._session))
        reports = {executor: LastReport(ms / 1000.0, tuple(others)) for executor, (ms, others) in found["last"].items()}
        return reports, tuple(found["leaving"])

    def grown_topics(self) -> list[GrownTopic]:
        """Topics that have more partitions by now than a present epoch reads."""
        return [GrownTopic(*found) for found in json.loads(self._bridge.grownTopics())]

    def stillborn(self) -> str:
        """Why executors end before their part of the plug-in runs; empty if none did, or one has come to run since."""
        return str(self._bridge.stillborn())

    def end_silent(self, executor: str, why: str) -> bool:
        """End an executor that does not answer; the cluster starts another in its place. False if there is none."""
        return bool(self._bridge.endSilent(self._session, executor, why))

    def avoid(self, executors: Iterable[str]) -> None:
        """Exactly these get no instances from the next epoch on, if the others have seats enough."""
        self._bridge.avoid(json.dumps(sorted(executors)))

    def foresee(self, topology: str) -> list[tuple[int, str]]:
        """Instances (by index) that would sit elsewhere if the next epoch began now, and their executors."""
        return [(index, executor) for index, executor in json.loads(self._bridge.foresee(self._session, topology))]

    def end_run(self, run: str, why: str) -> None:
        """End a query run as if it had failed for this reason."""
        self._bridge.endRun(self._session, run, why)

    def release(self, executors: Iterable[str], left: int | None) -> bool:
        """End these executors, unless one of them runs a task. left: how many are wanted from now on; None: the others
        that live now."""
        ids = json.dumps(list(executors))
        return bool(self._bridge.release(self._session, ids, -1 if left is None else left))

    def want(self, count: int | None) -> None:
        """Want so many executors in all; None: one wherever there is room."""
        self._bridge.want(self._session, -1 if count is None else count)

    def await_epoch_after(self, topology: str, epoch: int, timeout_s: float) -> int | None:
        """The next epoch's number once it is planned, which is after the previous one is committed; None on timeout.

        The number is not above ``epoch`` if the query run that was cut has died: then it is the next run's first."""
        found = int(self._bridge.awaitEpochAfter(topology, epoch, int(timeout_s * 1000)))
        return found if found >= 0 else None
