"""Keeps queries off pairs of executors that do not reach each other although both reach the driver.

Rows between such a pair wait, and no error is raised: an epoch would never end. Executors report which others they do
not reach (``jvm/plugin/Reach.scala``). Here it is decided which executors are avoided, and for how long; a supervised
query with instances on both sides is ended and starts again, from its checkpoint, on executors that reach each other.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from barograph.engines.spark.backoff import doubled_s
from barograph.engines.spark.bridge.reports import LastReport
from barograph.engines.spark.query.failures.diagnosis import CUT_OFF
from barograph.logs import OnceOnly

log = logging.getLogger(__name__)

HOLD_S, LONGEST_HOLD_S = 30.0, 600.0  # how long an executor is avoided after its last failure; doubled each time
# A run that was ended and still runs by then is ended again: its epoch was just beginning, and nothing ran to be ended.
AGAIN_S = 5.0
Pair = tuple[str, str]


class PartitionedExecutors(Protocol):
    """What this needs of an engine."""

    def avoid(self, executors: Collection[str]) -> None: ...

    def end_run(self, run: str, why: str) -> None: ...

    def supervised_runs(self) -> dict[str, tuple[str, ...]]: ...

    def seats_without(self, executors: Collection[str]) -> int: ...

    def where(self, executor: str) -> str: ...


def pairs_of(unreachable: Mapping[str, Iterable[str]]) -> frozenset[Pair]:
    """Each pair once, whichever side has reported it."""
    return frozenset((min(a, b), max(a, b)) for a, others in unreachable.items() for b in others)


def to_avoid(pairs: Collection[Pair], already: Collection[str], used: Mapping[str, int]) -> tuple[str, ...]:
    """Executors without which no pair is left, few of them: those avoided already, then those in most pairs, then those
    with fewest instances (used)."""
    left, chosen = set(pairs), []
    while left:
        sides = [executor for pair in left for executor in pair]
        worst = min(set(sides), key=lambda e: (e not in already, -sides.count(e), used.get(e, 0), e))
        chosen.append(worst)
        left = {pair for pair in left if worst not in pair}
    return tuple(chosen)


class Partitions:
    """Of one application; ``ExecutorWatch`` calls ``judge`` each second."""

    def __init__(self, engine: PartitionedExecutors, now: Callable[[], float] = time.monotonic) -> None:
        self._engine, self._now = engine, now
        self._until_s: dict[str, float] = {}  # executors that are avoided
        self._avoided: set[str] = set()  # as the engine knows
        self._times: dict[str, int] = {}
        self._ended_s: dict[str, float] = {}  # runs, and when they were ended last
        self._warnings = OnceOnly(log)

    def judge(self, reports: Mapping[str, LastReport]) -> None:
        """reports: of every live executor that has reported."""
        pairs = pairs_of({executor: report.unreachable for executor, report in reports.items()})
        if not pairs and not self._until_s and not self._avoided:
            return
        runs = self._engine.supervised_runs()
        self._choose(pairs, runs)
        for run, executors in runs.items():
            broken = sorted(pair for pair in pairs if set(pair) <= set(executors))
            if broken and self._now() - self._ended_s.get(run, float("-inf")) >= AGAIN_S:
                self._end(run, broken[0], len(executors))
        self._ended_s = {run: at_s for run, at_s in self._ended_s.items() if run in runs}

    def _choose(self, pairs: frozenset[Pair], runs: Mapping[str, tuple[str, ...]]) -> None:
        now_s, before = self._now(), set(self._until_s)
        used = Counter(executor for executors in runs.values() for executor in executors)
        for executor in to_avoid(pairs, before, used):
            if executor not in before:
                self._times[executor] = self._times.get(executor, 0) + 1
                others = sorted({o for pair in pairs if executor in pair for o in pair} - {executor})
                here, there = self._engine.where(executor), ", ".join(map(self._engine.where, others))
                log.warning("%s and %s %s: the first gets no instances for now", here, there, CUT_OFF)
            hold_s = doubled_s(HOLD_S, self._times.get(executor, 1) - 1, LONGEST_HOLD_S)
            self._until_s[executor] = now_s + hold_s
        for executor in [e for e, until_s in self._until_s.items() if until_s <= now_s]:
            del self._until_s[executor]
            log.info("%s reaches the others again and may get instances", self._engine.where(executor))
        if (wanted := set(self._until_s)) != self._avoided:
            self._engine.avoid(wanted)
            self._avoided = wanted

    def _end(self, run: str, pair: Pair, needed: int) -> None:
        what = " and ".join(map(self._engine.where, pair))
        if self._engine.seats_without(self._until_s.keys()) < needed:
            self._warnings.warn(run, f"{what} {CUT_OFF}, and the other executors have too few seats: a query waits")
            return
        log.warning("a query with instances on both %s is started again without one of them: they %s", what, CUT_OFF)
        self._engine.end_run(run, f"{what} {CUT_OFF}")
        self._ended_s[run] = self._now()
