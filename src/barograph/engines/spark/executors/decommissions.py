"""Moves instances away from executors that were decommissioned, before these die.

Such an executor gets no more tasks, runs those it has, and ends by itself when none is left. The instances of a
real-time query never end by themselves, so the epoch is cut; in the next one they sit elsewhere. Spark sends no event,
so the scheduler is asked once a second.
"""

import logging
from collections.abc import Collection
from typing import Protocol

from barograph.logs import OnceOnly

log = logging.getLogger(__name__)


class LeavingExecutors(Protocol):
    """What this needs of an engine."""

    def lives(self) -> bool: ...

    def leaving(self) -> tuple[str, ...]: ...

    def seated_on(self, executors: Collection[str]) -> dict[str, int]: ...

    def free_seats(self, topology: str) -> int: ...

    def fit(self, topology: str, seats: int | None) -> int: ...

    def make_way(self, topology: str) -> int: ...

    def where(self, executor: str) -> str: ...


class Decommissions:
    """Of one application; ``RegularUpkeep`` calls ``keep_up`` each second."""

    def __init__(self, engine: LeavingExecutors) -> None:
        self._engine = engine
        self._told: set[str] = set()
        self._cut: dict[str, int] = {}  # topology -> its epoch that was cut last
        self._warnings = OnceOnly(log)

    def lives(self) -> bool:
        return self._engine.lives()

    def keep_up(self) -> None:
        leaving = self._engine.leaving()
        for executor in leaving:
            if executor not in self._told:
                log.info("%s is decommissioned: its instances move away", self._engine.where(executor))
        self._told = set(leaving)
        seated = self._engine.seated_on(leaving) if leaving else {}
        self._cut = {topology: epoch for topology, epoch in self._cut.items() if seated.get(topology) == epoch}
        for topology, epoch in seated.items():
            if topology not in self._cut and self._has_room(topology, leaving):
                self._cut[topology] = epoch
                count = self._engine.make_way(topology)
                log.info("%s is cut, and %d of its instances move", topology, count)

    def _has_room(self, topology: str, leaving: Collection[str]) -> bool:
        """Without room its next epoch could not begin. Operators that can be scaled get fewer instances; if that is not
        enough, it stays until there are seats, or until the executor dies."""
        free = self._engine.free_seats(topology)
        needed = self._engine.fit(topology, free)
        if needed <= free:
            self._warnings.over(topology)
            return True
        names = ", ".join(map(self._engine.where, leaving))
        text = f"{topology} stays on {names}, which will end: it needs {needed} seats and the others have {free}"
        self._warnings.warn(topology, text)
        return False
