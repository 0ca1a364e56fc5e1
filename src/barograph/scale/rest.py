"""Whether a topology's parallelism changed lately: numbers that straddle a change are no ground for the next one."""

from collections.abc import Sequence

from barograph.model import Cycle, Snapshot


def changed_within(history: Sequence[Cycle], now: Snapshot, topology: str, cycles: int) -> bool:
    """Whether any of the last ``cycles`` cycles, the present one included, began with another parallelism.

    A change counts from the order on, unless it was refused, and also when it was made by hand.
    """
    present = _degrees(now, topology)
    for cycle in history[-(cycles - 1) :] if cycles > 1 else ():
        ordered = cycle.outcome is None or cycle.outcome.ok
        if ordered and any(r.topology == topology for r in cycle.plan.rescales):
            return True
        if _degrees(cycle.snapshot, topology) not in ({}, present):
            return True
    return False


def _degrees(snapshot: Snapshot, topology: str) -> dict[str, int]:
    found = next((t for t in snapshot.topologies if t.name == topology), None)
    return {} if found is None else {o.name: o.parallelism for o in found.operators}
