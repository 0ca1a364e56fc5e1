"""One sentence for each instance that did not get the worker that was ordered for it. It only reads."""

from collections.abc import Iterable

from barograph.engines.spark.bridge.telemetry import EpochSeen


def strays(epochs: Iterable[EpochSeen]) -> list[str]:
    found = {
        f"{i.operator}/{i.index} did not get executor {s.wanted} in epoch {e.epoch}: {s.because}"
        for e in epochs
        for i, s in e.seated.items()
        if s.wanted and s.because
    }
    return sorted(found)
