"""Applies one plan at a time. A plan that comes while an earlier one is being applied waits a little, then is refused.

A client that gave up waiting for its answer sends its next plan while the driver still works on the last one; without
this, such plans would pile up and be applied one after the other, each long after it was made.
"""

import threading
import time
from collections.abc import Callable

from barograph.model import Outcome, Plan, Refusal, RefusalCode

WAIT_S = 30.0


class OnePlan:
    """apply: what applies a plan. wait_s: how long a plan waits for the one before it."""

    def __init__(
        self, apply: Callable[[Plan], Outcome], wait_s: float = WAIT_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._apply, self._wait_s, self._clock = apply, wait_s, clock
        self._lock = threading.Lock()
        self._began_s = 0.0

    @property
    def busy(self) -> bool:
        """Whether a plan is being applied."""
        return self._lock.locked()

    def __call__(self, plan: Plan) -> Outcome:
        if not self._lock.acquire(timeout=self._wait_s):
            took_s = self._clock() - self._began_s
            why = f"an earlier plan is still being applied, for {took_s:.0f} s now: decide again when it is done"
            return Outcome(refused=(Refusal("the plan", RefusalCode.BUSY, why),))
        try:
            self._began_s = self._clock()
            return self._apply(plan)
        finally:
            self._lock.release()
