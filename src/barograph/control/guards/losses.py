"""Which topologies have lost a worker with an instance, and when that was seen. Pure.

Their queries were restarted: code is cold on a new worker, and rows that were read before are read again. Neither says
anything about the load, nor about the last change.
"""

from collections.abc import Sequence

from barograph.engines.reduced import applied_part
from barograph.model import Cycle, Instance, MigrationMode, Slot, Snapshot

REPLACES_WORKERS = frozenset({MigrationMode.WORKER, MigrationMode.RESTART_APP})


def losses(history: Sequence[Cycle], now: Snapshot, since_s: float) -> dict[str, float]:
    """By topology, when a loss was last seen, if that was at ``since_s`` or later. A worker that a plan has replaced,
    or from which it has moved the instances away, was not lost."""
    found: dict[str, float] = {}
    looks = [*(c.snapshot for c in history), now]
    for cycle, after in zip(history, looks[1:], strict=True):
        before = cycle.snapshot
        if after.at_s < since_s or after.application != before.application or cycle.plan.mode in REPLACES_WORKERS:
            continue
        gone = {w.slot for w in before.workers if (new := after.worker(w.slot)) is None or new.executor != w.executor}
        if gone:
            found |= {i.topology: after.at_s for i, slot in _placement_after(cycle).items() if slot in gone}
    return found


def _placement_after(cycle: Cycle) -> dict[Instance, Slot]:
    applied = cycle.outcome is not None and cycle.outcome.ok
    return {**cycle.snapshot.placement.slots, **(applied_part(cycle).placement.slots if applied else {})}
