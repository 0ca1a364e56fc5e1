"""What each mode stops, and the degradation measure, on the worked numbers of migration.md."""

import pytest

from barograph.migrate.modes import degraded_s, stopped
from barograph.model import BadInput, Instance, MigrationMode, Placement, Slot


def placed(**slots: str) -> Placement:
    return Placement({Instance("t", i[0], int(i[1])): Slot(w) for w, held in slots.items() for i in held.split()})


BEFORE = placed(w1="A0 A1", w2="B0 B1", w3="C0")
AFTER = placed(w1="A0 B1", w2="A1 B0", w3="C0")


@pytest.mark.parametrize(
    ("mode", "count"),
    [
        (MigrationMode.RESTART_APP, 5),
        (MigrationMode.RESTART_QUERY, 5),
        (MigrationMode.WORKER, 4),
        (MigrationMode.BOUNDARY, 2),
        (MigrationMode.CUT, 2),
        (MigrationMode.WARM_CUT, 2),
    ],
)
def test_instances_stopped(mode: MigrationMode, count: int) -> None:
    assert len(stopped(mode, BEFORE, AFTER)) == count
    assert stopped(mode, BEFORE, BEFORE) == ()


@pytest.mark.parametrize(("by_pct", "seconds"), [(20, 5), (40, 4), (60, 3), (80, 2), (100, 2)])
def test_degradation(by_pct: float, seconds: int) -> None:
    assert degraded_s([100, 100, 50, 30, 0, 0, 70, 100], 100, by_pct) == seconds


def test_degradation_needs_a_stable_rate() -> None:
    with pytest.raises(BadInput, match="stable throughput must be above 0"):
        degraded_s([1.0], 0, 20)
