"""Restarts of queries that a plan asks for: each is stopped between two epochs, and work is done while it is down.

A query that is stopped there repeats nothing: its last epoch is committed and no other has begun.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

Between = Callable[[], str]
"""Work that is done while queries are down. Returns "" when done, else why not."""


class Restartable(Protocol):
    """A query that can be stopped and started again. doing: what it does now, for people to read."""

    doing: str

    def repartition(self, count: int | None, between: Between | None = None) -> str:
        """Stop it, split its state over ``count`` instances (None: do not), do ``between``, start it again. Returns ""
        when all of it was done, else why not."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedRestart:
    """count: over how many instances the state is split; None leaves it as it is."""

    query: Restartable
    count: int | None = None


def restart_each(restarts: Mapping[str, PlannedRestart]) -> dict[str, str]:
    """Restart one after the other. Returns for each topology what went wrong, or ""."""
    return {topology: restart.query.repartition(restart.count) for topology, restart in restarts.items()}


def restart_together(restarts: Mapping[str, PlannedRestart], what: str, between: Between) -> dict[str, str]:
    """All are down while ``between`` is done, once. what: the key of its result in the answer.

    If one cannot be stopped, ``between`` is not done, and those that were stopped before it start again.
    """
    if not restarts:
        return {what: between()}
    first, *others = restarts.items()
    topology, restart = first
    problems: dict[str, str] = {}

    def inside() -> str:
        problems.update(restart_together(dict(others), what, between))
        return ""

    return {topology: restart.query.repartition(restart.count, inside), **problems}
