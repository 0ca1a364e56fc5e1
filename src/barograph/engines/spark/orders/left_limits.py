"""Lifts the CPU limits that a controller ordered once no controller acts any more.

A limit fits the load that its controller saw last. Without a controller nothing raises it when the load rises: the
topology falls behind although there is idle CPU. Places, numbers of instances and shares stay, because they keep no
instance from idle CPU. Limits that a plan by hand ordered stay too: they were never meant to follow the load.

The time in which this was not called does not count: then the driver or the machine was stopped, and its controllers
may have been stopped too.
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol

from barograph.engines.spark.attached_controllers import AttachedControllers
from barograph.engines.spark.orders.share_orders import ShareOrders
from barograph.model import Instance

log = logging.getLogger(__name__)

LATE_S = 3.0  # it is called about once a second; a call may be late by waiting for the engine
CYCLES = 2  # a controller that has sent no plan for so many cycles has missed one


class LimitedEngine(Protocol):
    """What this needs of an engine."""

    @property
    def shares(self) -> ShareOrders: ...

    def lift_limits(self) -> list[Instance]: ...

    def lives(self) -> bool: ...


class LeftLimits:
    """Of one driver. last_plan_s: when a controller last sent a plan, on ``clock``; None if none did. frozen: whether
    the driver is held as it is. applying: whether a plan is being applied. gone_s: a controller that sent none for so
    long acts no more, unless its cycle is about as long."""

    def __init__(
        self,
        engine: LimitedEngine,
        controllers: AttachedControllers,
        last_plan_s: Callable[[], float | None],
        frozen: Callable[[], bool],
        applying: Callable[[], bool],
        gone_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine, self._controllers, self._last_plan_s = engine, controllers, last_plan_s
        self._frozen, self._applying, self._gone_s, self._clock = frozen, applying, gone_s, clock
        self._looked_s = clock()
        self._seen_s: float | None = None
        self._silent_s = 0.0
        self.lifts = True
        """False: limits stay whatever becomes of controllers, as in a run that measures a policy to its last row, and
        while the driver ends."""
        self.lifted = ""
        """Why limits are lifted; empty if they are not, or if a controller has sent a plan since."""

    def lives(self) -> bool:
        return self._engine.lives()

    def keep_up(self) -> None:
        now_s, last_s = self._clock(), self._last_plan_s()
        self._silent_s += min(now_s - self._looked_s, LATE_S)
        self._looked_s = now_s
        if last_s != self._seen_s:
            self._seen_s, self._silent_s, self.lifted = last_s, 0.0, ""
        applying = self._applying()
        if applying:  # it may take minutes, and its controller waits for it
            self._silent_s = 0.0
        held = applying or self._frozen() or not self.lifts
        if last_s is None or held or not self._engine.shares.steered:
            return
        why = self._nobody_acts(last_s)
        if why:
            lifted = self._engine.lift_limits()
            if lifted:
                self.lifted = f"{why}: CPU limits are lifted (instances: {len(lifted)}), shares stay reserved"
                log.warning("%s", self.lifted)

    def _nobody_acts(self, last_plan_s: float) -> str:
        """Why no controller acts; empty while one may."""
        left_s = self._controllers.left_s
        if left_s is not None and left_s >= last_plan_s:
            return "the controller was detached"
        acting = self._controllers.acting()
        patience_s = max(self._gone_s, CYCLES * acting.cycle_s) if acting else self._gone_s
        return f"no controller has sent a plan for {patience_s:g} s" if self._silent_s >= patience_s else ""
