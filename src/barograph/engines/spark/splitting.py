"""Split the state of a stopped query over another number of instances, or leave it as it was. It starts nothing."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

TRIES = 4
FIRST_WAIT_S = 0.1


class Splits(Protocol):
    """What an engine offers for it; each answers empty when done, else why not."""

    def repartition(self, checkpoint: str, count: int) -> str: ...

    def unfinished_repartition(self, checkpoint: str) -> int:
        """How many instances one that was begun was to give; 0 where there is none."""
        ...

    def undo_repartition(self, checkpoint: str) -> str: ...


@dataclass(slots=True)
class Wish:
    """The query is to be stopped, its state split over count instances (None: left as it is), and started again.

    between: what else is done while it is down; empty when done, else why not."""

    count: int | None
    between: Callable[[], str] | None = None
    done: threading.Event = field(default_factory=threading.Event)
    problem: str = ""

    def grant(self, problem: str = "") -> None:
        self.problem = problem
        self.done.set()


def split_state(engine: Splits, checkpoint: str, count: int, stopping: Callable[[float], bool]) -> str:
    """Empty when the state is split over so many instances; else why not, and it is split as before.

    stopping: waits so many seconds and says whether everything is to end."""
    why = engine.repartition(checkpoint, count)
    tries = 1
    while why and tries < TRIES and engine.unfinished_repartition(checkpoint):
        # An executor that dies meanwhile fails the work; what was begun can be begun again.
        if stopping(FIRST_WAIT_S * 2**tries):
            break
        tries += 1
        why = engine.repartition(checkpoint, count)
    if why:
        undone = engine.undo_repartition(checkpoint)
        why += f"; it could not be undone: {undone}" if undone else "; the query goes on as it was"
    return why
