"""What follows when main of an application ends with one of its queries: whether it is called again, and when.

The deaths of each query count since its last committed epoch, as those of a script's queries do. Its epochs and its
instances are known to the driver's engine; where there is none, only the error tells.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.query.failures.diagnosis import (
    Cause,
    Death,
    GivenUp,
    GiveUpCode,
    RestartLimits,
    diagnose,
    give_up,
    never_fits,
    wait_s,
)
from barograph.engines.spark.query.failures.post_mortem import KEPT, planned_epochs
from barograph.engines.spark.query.naming import topology_name
from barograph.engines.spark.query.start.first_size import PARTITIONS, FirstSize, SizeChoice
from barograph.engines.spark.query.start.room import await_room
from barograph.engines.spark.tolerated import tolerated
from barograph.submit.hooks import say_each_once

log = logging.getLogger(__name__)

_IDENTIFIER = re.compile(r"^Identifier: (?:(.*) )?\[id = ([0-9a-f-]{36}), runId = ([0-9a-f-]{36})\]", re.MULTILINE)
_ATTACHED_S = 30.0  # a query that does not fit dies within a second, often before the supervisor is there


@dataclass(frozen=True, slots=True)
class Attached:
    """What is known of the application once it is supervised. size: what the first sizes of its queries go by."""

    engine: SparkEngine
    size: SizeChoice


@dataclass(frozen=True, slots=True)
class NextCall:
    """Of main, after a query died. topology: that query; empty where the error does not name it. why: main is not
    called again for this reason; None: it is, after wait_s."""

    topology: str
    death: Death
    why: GivenUp | None = None
    wait_s: float = 0.0


def dead_query(text: str) -> tuple[str, str]:
    """The topology and Spark's id of its run, as Spark's error names them; empty where it does not."""
    found = _IDENTIFIER.search(text)
    return ("", "") if found is None else (topology_name(found[1], found[2]), found[3])


class MainDeaths:
    """attached: waits at most so many seconds until the application is supervised; None if it is not. conf: the
    settings of its session, as Java has them. stopping: waits so many seconds and returns whether the program is being
    ended."""

    def __init__(
        self,
        limits: RestartLimits,
        attached: Callable[[float], Attached | None],
        conf: Callable[[], Any],
        stopping: Callable[[float], bool],
        say: Callable[[str], None],
    ) -> None:
        self._limits, self._attached, self._conf, self._stopping, self._say = limits, attached, conf, stopping, say
        self._deaths: dict[str, list[Death]] = {}
        self._were_up: set[str] = set()
        self._sizes: dict[str, FirstSize] = {}
        self._partitions: int | None = None  # as set in the session for queries that did not fit

    def judged(self, text: str, called_s: float, died_s: float) -> NextCall:
        """text: what main threw. called_s: when it was called. May wait for seats."""
        topology, run = dead_query(text)
        lacks_seats = diagnose(text, died_s, None, ()).cause is Cause.SEATS
        seen = self._attached(_ATTACHED_S if lacks_seats else 0.0)
        if died_s - called_s > self._limits.within_s:
            self._deaths.clear()
        death = self._noted(topology, run, text, died_s, seen)
        deaths, why = self._deaths[topology], None
        if not lacks_seats or not topology or topology in self._were_up:
            seen = None
        if seen is not None:
            with tolerated(log, f"no number of instances was chosen for {topology}", Exception):
                if self._fitted(topology, death, seen):
                    deaths.clear()
                    return NextCall(topology, death)
                why = self._why_it_never_fits(topology, seen.engine)
        if (why := why or give_up(deaths, self._limits)) is not None:
            return NextCall(topology, death, why)
        if seen is not None:
            with tolerated(log, f"seats for {topology} were not waited for", Exception):
                patience_s, needed = self._limits.patience_s, death.needed_seats
                await_room(seen.engine, topology, patience_s, self._stopping, self._say_once, needed)
                return NextCall(topology, death)
        return NextCall(topology, death, None, wait_s(deaths, self._limits))

    def _noted(self, topology: str, run: str, text: str, died_s: float, seen: Attached | None) -> Death:
        """A query that has committed an epoch since main was called begins its count again."""
        planned: list[int] = []
        if seen is not None and run:
            with tolerated(log, f"it is not known what {topology} has committed", Exception):
                seen.engine.refresh()
                planned = planned_epochs(seen.engine, topology, {run})
                if len(planned) > 1 or any(e.is_up for e in seen.engine.epochs(topology) if e.run == run):
                    self._were_up.add(topology)
        if len(planned) > 1:
            self._deaths.pop(topology, None)
        # Its first epoch and one that is not known are the same here: an engine that came late does not know it.
        epoch = max(planned, default=0) or None
        death = diagnose(text, died_s, epoch, (), topology in self._were_up)
        deaths = self._deaths.setdefault(topology, [])
        deaths.append(death)
        del deaths[:-KEPT]
        return death

    def _fitted(self, topology: str, death: Death, seen: Attached) -> bool:
        """Whether the query has a number of instances that fits when main starts it again."""
        size = self._sizes.setdefault(topology, FirstSize(seen.engine, self._stopping, seen.size))
        if not size.chosen_after(death, topology):
            return False
        if size.partitions is not None:  # for all that main starts: when it starts which query is not known
            self._partitions = min(size.partitions, self._partitions or size.partitions)
            self._conf().set(PARTITIONS, str(self._partitions))
        return True

    def _why_it_never_fits(self, topology: str, engine: SparkEngine) -> GivenUp | None:
        deaths = self._deaths[topology]
        if self._sizes[topology].partitions is not None:
            theirs = str(self._conf().get(PARTITIONS))
            if theirs != str(self._partitions):
                text = (
                    f"it needs {deaths[-1].needed_seats} seats, one for each instance, and the application itself sets "
                    f"{PARTITIONS}={theirs}: with {self._partitions} it fits, so set that, or leave the setting out"
                )
                return GivenUp(GiveUpCode.NEVER_FITS, text)
        return never_fits(deaths, engine.seats, engine.can_grow(), engine.stillborn())

    def _say_once(self, text: str) -> None:
        say_each_once([text], self._say)
