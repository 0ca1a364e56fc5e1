"""What an instance may use above its limit for a while, because it left so much of its share before.

Rows come in handfuls, and after each hiccup of the machine, the network or the GC there is a pile of them. Who uses
less than its share on the whole would still wait at its limit each time. So what it leaves is saved for it, over some
cycles: it may use that as fast as it likes, and no more. Over those cycles nobody gets more than its share.
"""

from collections.abc import Mapping, Sequence

from barograph.model import Cycle, Instance, Snapshot

SAVED_CYCLES = 15  # what was left before is forgotten


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
        limits.update(cycle.plan.shares_pct)
        for instance, cpu_s in zip(then.metrics.instances, then.metrics.columns["cpu_s"].tolist(), strict=True):
            if instance in saved:
                free = min(shares_pct[instance], limits.get(instance, 0.0))
                saved[instance] = max(0.0, saved[instance] + free - 100.0 * cpu_s / then.cycle_s)
    return saved
