"""How many instances a query gets when a driver starts it and there are fewer seats: what its user declares holds, and
the policy that is given chooses. Spark keeps the number of a stateful operator in the query's checkpoint, so that is
chosen once; that of others at each start of a driver. It starts nothing.

Spark's own default is 200 shuffle partitions, which no small application has seats for.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.failures.diagnosis import Cause, Death
from barograph.engines.spark.query.start.prepared_start import PreparedStart
from barograph.model import Operator, Snapshot, Topology

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

    def cluster(self) -> Snapshot: ...

    def begin_smaller(self, topology: str, wanted: Mapping[str, int], given: Mapping[str, int]) -> None: ...


Asked = Callable[[Topology, Snapshot], Mapping[str, int] | None]
"""A policy's first decision of a topology on a cluster: instances by operator, None if it does not place them all."""


def as_it_is(topology: Topology) -> Topology:
    return topology


@dataclass(frozen=True, slots=True)
class SizeChoice:
    """What a first size goes by. declared: the topology with what its user declares for it. policy: its name; empty
    where none is given. asked: the policy itself."""

    declared: Callable[[Topology], Topology] = as_it_is
    policy: str = ""
    asked: Asked | None = None


PLANNED = SizeChoice()


def with_kept_state(topology: Topology) -> Topology:
    """Of a query that has committed an epoch: its checkpoint has the number of its stateful operators."""
    kept = (replace(o, excluded=o.excluded or o.stateful) for o in topology.operators)
    return replace(topology, operators=tuple(kept))


def within_most(topology: Topology) -> dict[str, int]:
    """Instances by operator: as planned, as far as that is within what is declared for it. All stateful operators have
    the same number."""
    found = {o.name: o.parallelism for o in topology.operators}
    for group in _groups(topology):
        count = max(o.parallelism for o in group)
        most = min((o.max_parallelism for o in group if o.max_parallelism is not None), default=count)
        found |= dict.fromkeys((o.name for o in group), max(_least(group), min(count, most)))
    return found


def sizes(topology: Topology, seats: int) -> Iterator[dict[str, int]]:
    """Instances by operator that fit, each with fewer than the one before. The first take half of the seats, so that
    there is room to scale and to move, or are as few as possible. What has most instances shrinks first, none below its
    least. A source has an instance for each partition of its input."""
    found, groups = within_most(topology), _groups(topology)
    while True:
        can_shrink = [group for group in groups if found[group[0].name] > _least(group)]
        total = sum(found.values())
        if total <= seats // 2 or (not can_shrink and total <= seats):
            yield dict(found)
        if not can_shrink:
            return
        largest = max(can_shrink, key=lambda group: found[group[0].name])
        found |= {o.name: found[o.name] - 1 for o in largest}


def fitting_at_first(
    topology: Topology, seats: int, asked: Callable[[Topology], Mapping[str, int] | None] | None = None
) -> tuple[dict[str, int] | None, bool]:
    """Instances by operator, None if no size fits; and whether a policy chose them. That is the largest size for which
    the policy's first decision places every instance in the seats that are there."""
    fit = list(sizes(topology, seats))
    if asked is not None:
        for size in fit:
            found = asked(_sized(topology, size))
            if found is not None and sum(found.values()) <= seats:
                return dict(found), True
    return (fit[0] if fit else None), False


def _groups(topology: Topology) -> list[list[Operator]]:
    """Operators whose number may change; those of a group have one number."""
    keyed = [o for o in topology.operators if o.stateful and not o.source]
    groups = [[o] for o in topology.operators if not (o.stateful or o.source or o.fixed_because or o.excluded)]
    return groups + ([keyed] if keyed and not any(o.excluded for o in keyed) else [])


def _least(group: list[Operator]) -> int:
    return max(o.min_parallelism for o in group)


def _sized(topology: Topology, size: Mapping[str, int]) -> Topology:
    return replace(topology, operators=tuple(replace(o, parallelism=size[o.name]) for o in topology.operators))


class FirstSize:
    """Of one query. partitions: what was chosen for its shuffle partitions; None if nothing was."""

    def __init__(self, engine: Sizes, stopping: Callable[[float], bool], choice: SizeChoice) -> None:
        self._engine, self._stopping, self._choice = engine, stopping, choice
        self.partitions: int | None = None
        self._tried = False

    def chosen_after(self, death: Death, topology: str) -> bool:
        """Whether a run that died for lack of seats gets a number of instances that fits, and can be started now.

        Once, before a run of this driver was up: what does not help then never does. After the query's first epoch, by
        an earlier driver, only operators without state can get fewer."""
        if self._tried or death.cause is not Cause.SEATS:
            return False
        seats = self._settled_seats(topology)
        shape = self._engine.planned(topology)
        self._tried = True
        if shape is None:
            return False
        declared = self._choice.declared(shape)
        is_new = death.epoch in (None, 0)
        declared = declared if is_new else with_kept_state(declared)
        given, by_policy = fitting_at_first(declared, seats, self._asked())
        if given is None:
            return False
        keyed = {o.name: given[o.name] for o in shape.operators if o.stateful and not o.source}
        self._engine.begin_smaller(topology, {**within_most(declared), **keyed}, given)
        self.partitions = max(keyed.values(), default=None) if is_new else None
        policy = self._choice.policy if by_policy else ""
        line = told(topology, sum(o.parallelism for o in shape.operators), seats, given, self.partitions, policy)
        log.info("%s", line)
        sys.stderr.write(f"barograph: {line}\n")  # a program that sets up no logging sees it too
        sys.stderr.flush()
        return True

    def _asked(self) -> Callable[[Topology], Mapping[str, int] | None] | None:
        asked = self._choice.asked
        if asked is None:
            return None
        seen = self._engine.cluster()
        return lambda topology: asked(topology, seen)

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


def told(
    topology: str, needed: int, seats: int, given: Mapping[str, int], partitions: int | None, policy: str = ""
) -> str:
    counts = ", ".join(f"{name} {count}" for name, count in given.items())
    kept = "" if partitions is None else f", and {PARTITIONS}={partitions} stays in its checkpoint"
    how = f"set {PARTITIONS} or give the application more seats to choose yourself"
    by = f", as {policy} places them" if policy else ""
    return f"{topology} has {needed} instances and {seats} seats are free: it starts with {counts}{by}{kept} ({how})"
