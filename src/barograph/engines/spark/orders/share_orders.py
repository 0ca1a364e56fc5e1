"""The CPU of instances as it was ordered: the most each may use, and what is reserved for it.

Executors enforce it and report how (``jvm/enforce``); which limit is right is decided elsewhere. Orders are kept by
instance, so they hold in the next epochs and query runs too.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from barograph.engines.spark.bridge.reports import Executor
from barograph.model import Instance, Plan, Refusal, RefusalCode

OFF = "off"
NO_LIMIT_PCT = 100.0  # an instance is one thread, which uses no more anyway: executors limit nothing then
Shares = Mapping[Instance, tuple[float, float]]
"""Instance -> the most it may use and what is reserved for it (0: nothing), in per cent of a core."""
OrderedCpu = tuple[dict[Instance, float], dict[Instance, float], frozenset[Instance]]
"""Limits and shares that were ordered, and the instances whose limits are a controller's."""


class ShareOrders:
    """Sends all shares to the plug-in whenever one changes."""

    def __init__(self, send: Callable[[Shares], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._limits_pct: dict[Instance, float] = {}
        self._shares_pct: dict[Instance, float] = {}
        self._steered: frozenset[Instance] = frozenset()
        self._sent: dict[Instance, tuple[float, float]] | None = {}  # None: not known, since sending failed
        self._said: frozenset[Refusal] = frozenset()

    @property
    def limits_pct(self) -> Mapping[Instance, float]:
        return dict(self._limits_pct)

    @property
    def shares_pct(self) -> Mapping[Instance, float]:
        return dict(self._shares_pct)

    @property
    def steered(self) -> frozenset[Instance]:
        """Instances whose limit a controller ordered last, and not a plan by hand. Plans of controllers name the state
        of the cluster from which they were made."""
        return self._steered

    @property
    def ordered(self) -> OrderedCpu:
        """For ``take_back``."""
        return self._limits_pct, self._shares_pct, self._steered

    def order(self, plan: Plan) -> list[str]:
        """Set the limits and shares of a plan; instances that it does not name keep theirs. Returns what changed."""
        with self._lock:
            new = {i: pct for i, pct in plan.limits_pct.items() if self._limits_pct.get(i) != pct}
            named = plan.limits_pct.keys()
            steered = self._steered - named if plan.version is None else self._steered | named
            # Sent before it is noted: if sending fails, the next plan sends it again.
            self._set({**self._limits_pct, **new}, {**self._shares_pct, **plan.shares_pct}, steered)
        return [f"limit of {i} is {pct:g} %" for i, pct in new.items()]

    def lift(self) -> list[Instance]:
        """Take away the limits that a controller ordered; shares stay reserved, and limits by hand hold on. Returns the
        instances that were limited."""
        with self._lock:
            found = sorted(i for i in self._steered if self._limits_pct[i] < NO_LIMIT_PCT)
            limits = {**self._limits_pct, **dict.fromkeys(self._steered, NO_LIMIT_PCT)}
            self._set(limits, self._shares_pct, frozenset())
        return found

    def take_back(self, before: OrderedCpu) -> None:
        """The plan failed: what was ordered before it holds again, also where that cannot be sent now."""
        with self._lock:
            self._limits_pct, self._shares_pct, self._steered = before
            self._set(*before)

    def _set(
        self, limits: dict[Instance, float], reserved: dict[Instance, float], steered: frozenset[Instance]
    ) -> None:
        wanted = {i: (limits.get(i, NO_LIMIT_PCT), reserved.get(i, 0.0)) for i in {**limits, **reserved}}
        if wanted != self._sent:
            self._sent = None  # what cannot be sent may have arrived all the same
            self._send(wanted)
        self._limits_pct, self._shares_pct, self._steered, self._sent = limits, reserved, steered, wanted

    def news(self, found: Iterable[Refusal]) -> tuple[Refusal, ...]:
        """Those of these that were not among the last ones: what stays as it is needs to be said once only."""
        now = frozenset(found)
        new = now - self._said
        self._said = now
        return tuple(sorted(new, key=lambda r: r.what))


def no_limits_because(executors: Sequence[Executor]) -> str:
    """Why no executor limits the CPU of its instances; empty if one does, or has not said."""
    found = [e.enforces_because for e in executors if e.enforces == OFF]
    return found[0] if found and len(found) == len(executors) else ""


def shortfalls(executors: Iterable[Executor], where: Callable[[str], str]) -> list[Refusal]:
    """What executors say against the way in which they hold limits. where: an executor for people to read."""
    return [
        Refusal(f"CPU limits of {where(e.id)}", RefusalCode.NO_LIMITS, e.enforces_because)
        if e.enforces == OFF
        else Refusal(
            f"control groups of {where(e.id)}", RefusalCode.OTHER_WAY, f"{e.enforces_because}; limits: {e.enforces}"
        )
        for e in executors
        if e.enforces_because
    ]
