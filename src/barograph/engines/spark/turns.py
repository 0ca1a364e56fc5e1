"""Topologies that are stopped between two epochs and started again, with something done while they are down.

To stop a query there repeats nothing: its last epoch is committed and no other has begun.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

Between = Callable[[], str]
"""What is done while topologies are down; empty when done, else why not."""


class Keeper(Protocol):
    """Can stop a topology and start it again. doing: in words."""

    doing: str

    def repartition(self, count: int | None, between: Between | None = None) -> str:
        """Stop it, split its state over so many instances (None: leave it), do what is between, start it again. Empty
        when all of it was done, else why not."""
        ...


@dataclass(frozen=True, slots=True)
class Turn:
    """count: over how many instances the state is split; None leaves it."""

    keeper: Keeper
    count: int | None = None


def turned(turns: Mapping[str, Turn]) -> dict[str, str]:
    """One topology after the other: of each, what went wrong, or nothing."""
    return {topology: turn.keeper.repartition(turn.count) for topology, turn in turns.items()}


def turned_together(turns: Mapping[str, Turn], what: str, between: Between) -> dict[str, str]:
    """All are down while ``between`` is done, once. what: the name of that in the answer.

    Where one cannot be stopped nothing is done, and those that were stopped before it start again.
    """
    if not turns:
        return {what: between()}
    first, *others = turns.items()
    topology, turn = first
    problems: dict[str, str] = {}

    def inside() -> str:
        problems.update(turned_together(dict(others), what, between))
        return ""

    return {topology: turn.keeper.repartition(turn.count, inside), **problems}
