"""Shared by benches: summary figures of a list, printing progress, and printing a result with its bars."""

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """A bound that a claim promises: ``at_most`` or ``at_least``."""

    name: str
    value: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool:
        return (self.at_most is None or self.value <= self.at_most) and (
            self.at_least is None or self.value >= self.at_least
        )


def figures(values: Sequence[float]) -> dict[str, float]:
    """Median, worst and count, rounded to milliseconds."""
    if not values:
        return {"count": 0}
    return {
        "median": round(statistics.median(values), 3),
        "worst": round(max(values), 3),
        "count": len(values),
    }


def say(text: str) -> None:
    """Progress for people, on standard error; standard output has only the result."""
    print(text, file=sys.stderr, flush=True)


def finish(result: Mapping[str, object], bars: Sequence[Bar]) -> int:
    """Print the result with its bars as JSON; 1 if one is missed."""
    listed = [
        {
            "name": b.name,
            "value": round(b.value, 4),
            **({"at_most": b.at_most} if b.at_most is not None else {}),
            **({"at_least": b.at_least} if b.at_least is not None else {}),
            "met": b.met,
        }
        for b in bars
    ]
    print(json.dumps({**result, "bars": listed}, indent=2))
    for bar in bars:
        if not bar.met:
            print(f"missed: {bar.name} is {bar.value:.3f}", file=sys.stderr)
    return 0 if all(b.met for b in bars) else 1
