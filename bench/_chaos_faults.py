"""Which faults a seed has, and when. It breaks nothing (``_chaos_world``)."""

import random
from collections.abc import Sequence
from typing import Any

from bench._chaos_scenario import CYCLE_S

SILENCES = ("lost", "late", "repeated", "zeroed")
REST_S = 30 * CYCLE_S  # without faults: after that it must have come to rest
FAULTS = (*SILENCES, "unreachable", "observe fails", "no answer", "not applied", "failed", "node", "clock", "disk",
          "kill", "level", "slow")  # fmt: skip
KILLED_AT = ("observing", "before apply", "after apply", "recording", "nodes")


def drawn(
    chance: random.Random, seconds: float, faults: Sequence[str], topologies: Sequence[str], nodes: Sequence[str]
) -> list[tuple[float, str, Any]]:
    """(when, kind, what) in the first three quarters, and in a long run earlier: then it must come to rest."""
    found: list[tuple[float, str, Any]] = []
    until_s = 0.75 * seconds if seconds < 2 * REST_S else min(0.75 * seconds, seconds - REST_S)
    for _ in range(chance.randint(0, 8) if faults else 0):
        kind, at_s = chance.choice(tuple(faults)), chance.uniform(4, until_s)
        what: Any = None
        if kind in SILENCES:
            what = (chance.choice(topologies), chance.choice((1, 2, 4, 8, 20)) * CYCLE_S)
        elif kind == "node":
            what = (chance.choice(nodes), chance.uniform(1, 15))
            for k in range(1, chance.choice((1, 1, 4))):  # it flaps
                found.append((at_s + 8 * k, kind, what))
        elif kind == "clock":
            what = chance.choice((-1, 1)) * 10 ** chance.uniform(0, 5)
        elif kind == "disk":
            what = chance.uniform(2, 30)
        elif kind == "kill":
            what = chance.choice(KILLED_AT)
        elif kind == "level":
            what = (chance.randrange(len(topologies)), chance.randint(1, 3))
        elif kind == "slow":
            what = chance.uniform(0.5, 8)
        found.append((at_s, kind, what))
    return sorted(found, key=lambda f: f[0])
