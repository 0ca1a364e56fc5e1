"""Waits for seats before a run of a query: a run without a seat for each instance would die at once."""

import time
from collections.abc import Callable
from typing import Protocol

FORGET_S = 5.0  # the driver drops a dead executor soon after noticing; this is the longest wait for that
TOGETHER_S = 1.0  # new executors come together; a topology is not made smaller for the first of them
_LOOK_S = 0.05


class HasSeats(Protocol):
    """What an engine offers for it."""

    def living(self) -> tuple[tuple[str, ...], tuple[str, ...]]: ...

    def free_seats(self, topology: str) -> int: ...

    def fit(self, topology: str, seats: int | None) -> int: ...


def await_room(
    engine: HasSeats,
    topology: str,
    patience_s: float,
    stopping: Callable[[float], bool],
    say: Callable[[str], None],
    at_least: int = 0,
) -> bool:
    """Wait until no dead executor is counted and there are seats for all instances, or for the fewest it can run with;
    at most ``patience_s``. False if it is stopped meanwhile.

    stopping: waits so many seconds and returns whether the query is being stopped. say: takes what is waited for.
    at_least: seats that it needs if the engine has not seen it yet."""
    deadline = time.monotonic() + FORGET_S
    while engine.living()[1] and time.monotonic() < deadline:
        if stopping(_LOOK_S):
            return False
    began = time.monotonic()
    while (waited_s := time.monotonic() - began) < patience_s:
        free = engine.free_seats(topology)
        # Without any seat, fewer instances do not help.
        needed = engine.fit(topology, free if free and waited_s > TOGETHER_S else None) or at_least
        if needed <= free:
            break
        say(f"waiting for seats: {needed} instances need one each and {free} are free")
        if stopping(_LOOK_S):
            return False
    return True
