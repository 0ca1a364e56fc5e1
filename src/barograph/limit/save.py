"""CPU that an instance may use above its limit for a while, because it left that much of its share unused before.

Rows come in bursts, also after each short stop of the machine, the network or the GC. An instance that uses less than
its share on average would still wait at its limit in each burst. So the CPU that it left unused over some cycles is
saved, and it may use that in addition. Over those cycles no instance gets more than its share.
"""

from collections.abc import Mapping, Sequence
from math import floor

from barograph.model import Cycle, Instance, Placement, Snapshot

SAVED_CYCLES = 15  # CPU left unused earlier than this is forgotten


def with_savings(
    history: Sequence[Cycle],
    now: Snapshot,
    target: Placement,
    limits_pct: Mapping[Instance, float],
    shares_pct: Mapping[Instance, float],
) -> dict[Instance, float]:
    """The limits, raised for instances that have saved CPU; in whole per cents, at most what a node has."""
    found = dict(limits_pct)
    for i, more in saved_pct(history, now, shares_pct).items():
        slot = target.get(i) or now.placement.get(i)
        most = 0.0 if slot is None else min(100.0, now.node(slot.node).cpu_pct)
        found[i] = max(found[i], float(floor(min(most, shares_pct[i] + more) + 1e-9)))
    return found


def saved_pct(history: Sequence[Cycle], now: Snapshot, shares_pct: Mapping[Instance, float]) -> dict[Instance, float]:
    """Of each share, what its instance saved: left unused and has not used since, in per cent of a core for one cycle.

    Only what it was free to use counts: an instance that was limited below its share left nothing. The
    limits of one cycle's plan take effect in the next cycle.
    """
    saved = dict.fromkeys(shares_pct, 0.0)
    limits: dict[Instance, float] = {}
    recent = history[-SAVED_CYCLES:]
    seen = [*(cycle.snapshot for cycle in recent), now]
    for cycle, then in zip(recent, seen[1:], strict=True):
        limits.update(cycle.plan.limits_pct)
        for instance, cpu_s in zip(then.metrics.instances, then.metrics.columns["cpu_s"].tolist(), strict=True):
            if instance in saved:
                free = min(shares_pct[instance], limits.get(instance, 0.0))
                saved[instance] = max(0.0, saved[instance] + free - 100.0 * cpu_s / then.cycle_s)
    return saved
