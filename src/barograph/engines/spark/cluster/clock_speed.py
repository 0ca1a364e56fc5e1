"""The clock speed of this machine's cores, for policies that count load in Hz (CPU share x clock). Reads only.

The rated maximum is preferred to the present speed: a core that sleeps or boosts at the moment of reading would make
equal nodes look different.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

UNKNOWN_MHZ = 1000.0
"""Used if the clock cannot be read: all nodes then have the same."""
_MHZ = re.compile(r"^(?:cpu MHz|clock)\s*:\s*([0-9.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Clock:
    """origin: where the number comes from, for people to read."""

    mhz: float
    origin: str
    known: bool = True


def read_clock(
    cpus: Path = Path("/sys/devices/system/cpu"), cpuinfo: Path = Path("/proc/cpuinfo"), fallback: float = UNKNOWN_MHZ
) -> Clock:
    """The mean over the machine's cores."""
    rated = [khz / 1000.0 for p in sorted(cpus.glob("cpu[0-9]*/cpufreq/cpuinfo_max_freq")) if (khz := _number(p)) > 0]
    if rated:
        return Clock(sum(rated) / len(rated), "the rated maximum of its cores")
    try:
        seen = [mhz for text in _MHZ.findall(cpuinfo.read_text(encoding="utf-8")) if (mhz := float(text)) > 0]
    except (OSError, ValueError):
        seen = []
    if seen:
        return Clock(sum(seen) / len(seen), "the speed that its cores report")
    return Clock(fallback, f"unknown: this machine reports no clock speed, so {fallback:g} MHz is used", False)


@lru_cache(1)
def machine_clock() -> Clock:
    """Of this machine, read once, so that all nodes of a cluster have the same value."""
    return read_clock()


def _number(path: Path) -> float:
    try:
        return float(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0.0
