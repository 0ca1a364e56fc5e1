"""What a priority change needs of Spark: pause a topology's sources, know when it is drained, have it rescheduled.

The protocol is decided elsewhere (barograph.priority). The plan is made by a controller, which gets a signal that
levels have changed, so that it does not wait for its next cycle. Without a controller no plan is waited for.
"""

import time
from collections.abc import Callable, Mapping

from barograph.engines.spark.driver.supervisor import STEERED_S, Supervisor
from barograph.engines.spark.interfaces import PrioritisedQueries

LOOK_S = 0.5  # the longest that executors may take to answer
NUDGE_S = 1.0  # after this time the signal is repeated, in case the plan was refused


class SparkPriorityHooks:
    """The ``PriorityHooks`` of one driver. No call waits long, and each may be repeated."""

    def __init__(self, supervisor: Supervisor, clock: Callable[[], float] = time.monotonic) -> None:
        self._supervisor, self._clock = supervisor, clock
        self._engine: PrioritisedQueries = supervisor.engine
        self._asked: tuple[dict[str, int], int] | None = None
        self._nudged_s = 0.0
        self._nudged_for = -1

    def heeds_triggers(self) -> bool:
        return not self._steered() or self._engine.heeds_triggers

    def pause(self, topology: str) -> None:
        self._engine.gates.pause(topology)

    def drained(self, topology: str) -> bool:
        return self._engine.is_still(topology, LOOK_S)

    def reschedule(self, levels: Mapping[str, int]) -> bool:
        """Whether a plan is in effect that was made when these levels were known."""
        if self._asked is None or self._asked[0] != dict(levels):
            # Set once: this is polled while the engine is busy with the plan.
            self._asked = dict(levels), self._engine.set_levels(levels)
        asked = self._asked[1]
        if not self._steered() or self._engine.holds_version >= asked:
            return True
        now_s = self._clock()
        if self._nudged_for != asked or now_s - self._nudged_s >= NUDGE_S:
            self._nudged_for, self._nudged_s = asked, now_s
            self._supervisor.change_signal.raise_signal()
        return False

    def resume(self, topology: str) -> None:
        self._engine.gates.pause(topology, False)

    def flows(self, topology: str) -> bool:
        # A topology without a node rests by plan: its sources read as soon as that changes.
        return topology in self._engine.gates.resting or self._engine.flows(topology, LOOK_S)

    def _steered(self) -> bool:
        last_s = self._supervisor.steered_s
        return last_s is not None and self._clock() - last_s < STEERED_S
