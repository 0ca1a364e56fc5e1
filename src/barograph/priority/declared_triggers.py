"""The triggers that the options of a query ask for, and whether they wish its level raised. Pure.

A topology's trigger is on while one of its rules wishes it. What a rule turned on, the rules turn off again; what a
user turned on, they leave on.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from barograph.config import Config, default
from barograph.model.checks import require, require_number
from barograph.priority.triggers import RateTrigger, RawEventTrigger

SAMPLES = 120


@dataclass(frozen=True, slots=True)
class DeclaredTriggers:
    """rate: by the rows that fall due. raw_event: by the values that the program reports. level: while one is on."""

    rate: RateTrigger | None = None
    raw_event: RawEventTrigger | None = None
    level: int = default("priority.level")

    def __bool__(self) -> bool:
        return self.rate is not None or self.raw_event is not None

    @staticmethod
    def of(config: Config) -> "DeclaredTriggers":
        rate, above = config["priority.rate"], config["priority.above"]
        rows_s = None if rate is None else RateTrigger(
            rate, config["priority.rate-for"], config["priority.rate-off-part"], config["priority.rate-off-for"]
        )  # fmt: skip
        parts = config["priority.above-part"], config["priority.above-off-part"]
        return DeclaredTriggers(
            rows_s, None if above is None else RawEventTrigger(above, *parts), config["priority.level"]
        )


class TriggerWishes:
    """The state of one topology's rules: samples of its rate, and what each rule wishes now."""

    def __init__(self, triggers: DeclaredTriggers) -> None:
        self.triggers = triggers
        self._samples: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._by_rate = self._by_values = False
        self._ours = False

    def rate_seen(self, at_s: float, rows_s: float, on: bool) -> bool | None:
        """on: whether the topology's trigger is on. Returns what to turn it to; None: leave it."""
        if self.triggers.rate is None:
            return None
        if self._samples and self._samples[-1][0] >= at_s:
            self._samples.clear()
        self._samples.append((at_s, rows_s))
        self._by_rate = self.triggers.rate.wish(tuple(self._samples), self._by_rate and on)
        return self._turned(on)

    def values_seen(self, values: Sequence[float], on: bool) -> bool | None:
        """values: of a batch's rows. Otherwise as ``rate_seen``."""
        require(self.triggers.raw_event is not None, "there is no trigger for values: set the option priority.above")
        assert self.triggers.raw_event is not None
        for value in values:
            require_number("a value of a batch", value, float("-inf"))
        self._by_values = self.triggers.raw_event.wish(values, self._by_values and on)
        return self._turned(on)

    def _turned(self, on: bool) -> bool | None:
        wish = self._by_rate or self._by_values
        if wish and not on:
            self._ours = True
            return True
        if not on:
            self._ours = False
        return False if on and not wish and self._ours else None
