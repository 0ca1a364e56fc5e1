"""Instances that did not get the worker that was ordered for them, in one sentence each. It only reads."""

from collections.abc import Iterable

from barograph.engines.spark.sight import EpochSeen


def strays(epochs: Iterable[EpochSeen]) -> list[str]:
    found = {
        f"{i.operator}/{i.index} did not get executor {s.wanted} in epoch {e.epoch}: {s.because}"
        for e in epochs
        for i, s in e.seated.items()
        if s.wanted and s.because
    }
    return sorted(found)
