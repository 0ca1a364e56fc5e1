"""How long an instance is busy with a row if nothing slows it down: more than its CPU time if it waits for something.

An operator that sleeps or queries a database gets faster by more instances, not by more CPU. An instance that is
throttled, or runs on a full node, is also busy for longer than its CPU time; such cycles are left out.
"""

from collections.abc import Sequence

from barograph.model import Cycle, Frame, Instance, Snapshot
from barograph.model.frame import NOTHING

_NEAR_LIMIT = 0.5  # an instance that uses this part of its share while busy may be throttled at times
_FULL_NODE = 0.9


def busy_s_per_row(
    history: Sequence[Cycle], frame: Frame, key: tuple[str, str], cpu_s_per_row: float, cycles: int
) -> float:
    """Seconds a row keeps an instance busy, over the last cycles; its CPU time if no cycle is usable."""
    i = frame.position[key]
    busy, executed, cpu = (frame.column(name)[:, i].tolist() for name in ("busy_s", "executed", "cpu_s"))
    total_busy_s = total_rows = 0.0
    for back in range(1, min(cycles, len(frame)) + 1):
        if executed[-back] <= NOTHING or busy[-back] <= NOTHING:
            continue
        before = history[-back] if back <= len(history) else None  # its decision set the shares of that cycle
        if _throttled(before, key, cpu[-back] / busy[-back]) or _on_full_node(frame.snapshots[-back], key):
            continue
        total_busy_s += busy[-back]
        total_rows += executed[-back]
    return max(cpu_s_per_row, total_busy_s / total_rows) if total_rows > 0 else cpu_s_per_row


def _throttled(before: Cycle | None, key: tuple[str, str], cpu_of_busy: float) -> bool:
    """Whether its CPU per busy second was near the limit in force, which may be above its share."""
    demand = before.demand.of(*key) if before is not None and before.demand.enforced else None
    if before is None or demand is None:
        return cpu_of_busy >= _NEAR_LIMIT
    written = before.plan.limits_pct
    limits = [written.get(Instance(*key, index), share) for index, share in enumerate(demand.shares_pct)]
    return cpu_of_busy >= _NEAR_LIMIT * sum(limits) / len(limits) / 100.0


def _on_full_node(snapshot: Snapshot, key: tuple[str, str]) -> bool:
    full = {
        m.node
        for m in snapshot.node_metrics
        if m.cpu_used_s >= _FULL_NODE * snapshot.node(m.node).cpu_pct / 100.0 * snapshot.cycle_s
    }
    rows = snapshot.metrics.rows_of_operator.get(key)
    if not full or rows is None:
        return False
    slots = (snapshot.placement.get(snapshot.metrics.instances[row]) for row in rows.tolist())
    return any(slot is not None and slot.node in full for slot in slots)
