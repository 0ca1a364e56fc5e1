"""Splits the state of a stopped query over another number of instances, or leaves it as it was. It starts nothing."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from barograph.engines.spark.backoff import doubled_s

TRIES = 4
FIRST_WAIT_S = 0.1
_T = TypeVar("_T")


class RepartitionsState(Protocol):
    """What an engine offers for it. Texts are empty when it is done, else they say why not."""

    def repartition(self, checkpoint: str, count: int) -> str: ...

    def unfinished_repartition(self, checkpoint: str) -> int:
        """The number of instances an unfinished repartition was meant to give; 0 if there is none."""
        ...

    def undo_repartition(self, checkpoint: str) -> str: ...


@dataclass(slots=True)
class RestartRequest:
    """Stop the query, split its state over ``count`` instances (None: leave it), and start it again.

    between: what else is done while it is down. done: set by ``finish``; problem then says what failed, or is empty.
    died: the query died before it was stopped, and nothing was done."""

    count: int | None
    between: Callable[[], str] | None = None
    done: threading.Event = field(default_factory=threading.Event)
    problem: str = ""
    died: bool = False

    def finish(self, problem: str = "", died: bool = False) -> None:
        self.problem, self.died = problem, died
        self.done.set()


class AsksAgain(Protocol):
    """Asks until it is answered, for as long as an outage may last."""

    def __call__(self, question: Callable[[], _T]) -> _T: ...


def split_state(
    engine: RepartitionsState, checkpoint: str, count: int, stopping: Callable[[float], bool], ask: AsksAgain
) -> str:
    """Returns "" when the state is split over ``count`` instances; else why not, and it is split as before.

    stopping: waits so many seconds and returns whether the query is being stopped. ask: for what reads the checkpoint,
    whose file system may be away when a repartition has failed."""
    why = engine.repartition(checkpoint, count)
    tries = 1
    while why and tries < TRIES and ask(partial(engine.unfinished_repartition, checkpoint)):
        # A repartition fails if an executor dies meanwhile; if it had begun, it can be repeated.
        if stopping(doubled_s(FIRST_WAIT_S, tries)):
            break
        tries += 1
        why = engine.repartition(checkpoint, count)
    if why:
        undone = engine.undo_repartition(checkpoint)
        why += f"; it could not be undone: {undone}" if undone else "; the query goes on as it was"
    return why
