"""Resident memory of a soak's processes, and how it grew."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench._processes import parent_of, resident_mb
from bench._soak.flow import Flow

Samples = Sequence[tuple[float, Mapping[str, float]]]
MEASURED = ("driver_python", "driver_java", "driver_heap")
FROM, SPAN = 0.3, 0.06  # of the whole: minutes 15 to 18 of 50, against the last three


def sample(flow: Flow) -> dict[str, float]:
    """MB of the driver's Python, its JVM, and the JVM's heap after its last collection; 0: unknown."""
    java = java_of(flow)
    return dict(zip(MEASURED, (rss_mb(flow.pid), sum(map(rss_mb, java)), flow.heap_mb), strict=True))


def java_of(flow: Flow) -> list[int]:
    """Processes with the driver's JVM."""
    return children(flow.pid, b"SparkSubmit") if flow.pid else []


def growth(samples: Samples, seconds: float) -> dict[str, dict[str, float]]:
    """By kind: the median in the minutes after the first part, in the last ones, and their ratio."""
    found: dict[str, dict[str, float]] = {}
    for kind in samples[0][1] if samples else ():
        early = [mb[kind] for at_s, mb in samples if FROM <= at_s / seconds < FROM + SPAN and mb[kind] > 0]
        late = [mb[kind] for at_s, mb in samples if at_s / seconds >= 1 - SPAN and mb[kind] > 0]
        if early and late:
            first, last = statistics.median(early), statistics.median(late)
            found[kind] = {"early": round(first, 1), "late": round(last, 1), "growth": round(last / first, 3)}
    return found


def rss_mb(pid: int) -> float:
    try:
        return resident_mb(pid) if pid else 0.0
    except OSError:
        return 0.0  # ended meanwhile


def children(parent: int, word: bytes) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                if parent_of(int(folder.name)) == parent and word in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found
