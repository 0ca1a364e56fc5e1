"""What an instance may use above its limit for a while, because it left so much of its share before.

Rows come in handfuls, and after each hiccup of the machine, the network or the GC there is a pile of them. Who uses
less than its share on the whole would still wait at its limit each time. So what it leaves is saved for it, over some
cycles: it may use that as fast as it likes, and no more. Over those cycles nobody gets more than its share.
"""

from collections.abc import Mapping, Sequence
from math import floor

from barograph.model import Cycle, Instance, Placement, Snapshot

SAVED_CYCLES = 15  # what was left before is forgotten


def with_savings(
    history: Sequence[Cycle],
    now: Snapshot,
    target: Placement,
    limits_pct: Mapping[Instance, float],
    shares_pct: Mapping[Instance, float],
) -> dict[Instance, float]:
    """The limits, higher for those of these shares that have saved; in whole per cents, at most what a node has."""
    found = dict(limits_pct)
    for i, more in saved_pct(history, now, shares_pct).items():
        slot = target.get(i)
        most = 0.0 if slot is None else min(100.0, now.node(slot.node).cpu_pct)
        found[i] = max(found[i], float(floor(min(most, shares_pct[i] + more) + 1e-9)))
    return found


def saved_pct(history: Sequence[Cycle], now: Snapshot, shares_pct: Mapping[Instance, float]) -> dict[Instance, float]:
    """Of each share, what its instance left unused and has not used since, in per cent of a core for one cycle.

    Only what it was free to use counts: who was held below its share left nothing. The limits of one cycle's plan are
    those that the next cycle sees the effect of.
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
