"""How many instances a query gets at its first start if it has more than there are seats. Chosen once: Spark keeps the
number of a stateful operator in the query's checkpoint. It starts nothing.

Spark's own default is 200 shuffle partitions, which no small application has seats for.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.failures.diagnosis import Cause, Death
from barograph.engines.spark.query.start.prepared_start import PreparedStart
from barograph.model import Topology

log = logging.getLogger(__name__)

PARTITIONS = "spark.sql.shuffle.partitions"
SETTLED_S = 3.0  # executors come one after the other; so long without a new one, and all are there
LONGEST_S = 60.0
_LOOK_S = 0.1
_setting = threading.Lock()  # a session's settings hold for every query that starts meanwhile


class Sizes(Protocol):
    """What an engine offers for it."""

    def can_grow(self) -> bool: ...

    def free_seats(self, topology: str) -> int: ...

    def planned(self, topology: str) -> Topology | None: ...

    def begin_smaller(self, topology: str, wanted: Mapping[str, int], given: Mapping[str, int]) -> None: ...


def fitting_at_first(topology: Topology, seats: int) -> dict[str, int] | None:
    """Instances by operator: they take half of the seats, so that there is room to scale and to move, or as few as
    possible; None if those do not fit either. What has most instances shrinks first; all stateful operators have the
    same number. A source has an instance for each partition of its input."""
    found = {o.name: o.parallelism for o in topology.operators}
    keyed = [o.name for o in topology.operators if o.stateful and not o.source]
    groups = [[o.name] for o in topology.operators if not (o.stateful or o.source or o.fixed_because)]
    groups += [keyed] if keyed else []
    while groups and sum(found.values()) > seats // 2:
        most = max(groups, key=lambda group: max(found[name] for name in group))
        fewer = max(found[name] for name in most) - 1
        if fewer == 0:
            break
        found |= {name: min(found[name], fewer) for name in most}
    return found if sum(found.values()) <= seats else None


class FirstSize:
    """Of one query. partitions: what was chosen for its shuffle partitions; None if nothing was."""

    def __init__(self, engine: Sizes, stopping: Callable[[float], bool]) -> None:
        self._engine, self._stopping = engine, stopping
        self.partitions: int | None = None
        self._tried = False

    def chosen_after(self, death: Death, topology: str) -> bool:
        """Whether a run that died for lack of seats gets a number of instances that fits, and can be started now.

        Only before the query's first epoch was committed, and once: what does not help then never does."""
        if self._tried or death.cause is not Cause.SEATS or death.epoch not in (None, 0):
            return False
        seats = self._settled_seats(topology)
        shape = self._engine.planned(topology)
        given = None if shape is None else fitting_at_first(shape, seats)
        self._tried = True
        if shape is None or given is None:
            return False
        keyed = {o.name: given[o.name] for o in shape.operators if o.stateful and not o.source}
        wanted = {o.name: keyed.get(o.name, o.parallelism) for o in shape.operators}
        self._engine.begin_smaller(topology, wanted, given)
        self.partitions = max(keyed.values(), default=None)
        line = told(topology, sum(o.parallelism for o in shape.operators), seats, given, self.partitions)
        log.info("%s", line)
        sys.stderr.write(f"barograph: {line}\n")  # a program that sets up no logging sees it too
        sys.stderr.flush()
        return True

    @contextmanager
    def at_start(self, writer: DataStreamWriter | PreparedStart) -> Iterator[None]:
        """A query that is started within the block has the chosen number, unless its checkpoint has another."""
        if self.partitions is None:
            yield
            return
        with _setting:
            plain = writer.writer if isinstance(writer, PreparedStart) else writer
            conf = plain._df.sparkSession.conf
            before = conf.get(PARTITIONS)
            conf.set(PARTITIONS, str(self.partitions))
            try:
                yield
            finally:
                conf.set(PARTITIONS, str(before))

    def _settled_seats(self, topology: str) -> int:
        seats = self._engine.free_seats(topology)
        began = since = time.monotonic()
        while self._engine.can_grow() and time.monotonic() - since < SETTLED_S and time.monotonic() - began < LONGEST_S:
            if self._stopping(_LOOK_S):
                break
            now = self._engine.free_seats(topology)
            if now != seats:
                seats, since = now, time.monotonic()
        return seats


def told(topology: str, needed: int, seats: int, given: Mapping[str, int], partitions: int | None) -> str:
    counts = ", ".join(f"{name} {count}" for name, count in given.items())
    kept = "" if partitions is None else f", and {PARTITIONS}={partitions} stays in its checkpoint"
    how = f"set {PARTITIONS} or give the application more seats to choose yourself"
    return f"{topology} has {needed} instances and {seats} seats are free: it starts with {counts}{kept} ({how})"
