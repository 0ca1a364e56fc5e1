"""What each migration mode stops, and how long throughput suffered: the measures of N-Storm's evaluation."""

from collections.abc import Sequence

from barograph.migrate.diff import disturbed_slots
from barograph.model import Instance, MigrationMode, Placement
from barograph.model.checks import require_number, require_positive


def stopped(mode: MigrationMode, present: Placement, target: Placement) -> tuple[Instance, ...]:
    """Which instances are taken down by the mode's own doing, beyond the epoch boundary that stops everybody alike.

    restart-app: all. restart-query: all of the topologies that change. worker: all on workers where anything changes.
    boundary, cut, warm-cut: only those that move or end.
    """
    moves = [m for m in present.moves_to(target) if m.source is not None]
    if mode is MigrationMode.RESTART_APP:
        return tuple(sorted(present)) if present.moves_to(target) else ()
    if mode is MigrationMode.RESTART_QUERY:
        changed = {m.instance.topology for m in present.moves_to(target)}
        return tuple(sorted(i for i in present if i.topology in changed))
    if mode is MigrationMode.WORKER:
        disturbed = disturbed_slots(present, target)
        return tuple(sorted(i for i, slot in present.slots.items() if slot in disturbed))
    return tuple(sorted(m.instance for m in moves))


def degraded_s(throughput: Sequence[float], stable: float, by_pct: float) -> int:
    """Seconds in which throughput (one value a second) was at least ``by_pct`` per cent below ``stable``."""
    require_positive("stable throughput", stable)
    require_number("degradation", by_pct)
    # a hair of tolerance, so that 80 of 100 counts as 20 % below in binary arithmetic too
    return sum(1 for rows in throughput if (stable - rows) * 100.0 >= by_pct * stable * (1.0 - 1e-12))
