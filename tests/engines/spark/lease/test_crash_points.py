"""A driver that is killed before any operation on its checkpoint's files leaves a checkpoint that is exact."""

from pathlib import Path

import pytest

from barograph.testing.crash_points import crash_points

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_what_a_killed_driver_leaves_is_exact(tmp_path: Path) -> None:
    """Some of the points; ``make bench ONLY=crash-points`` has all."""
    found = list(crash_points(tmp_path, (2, 4, 9, 15)))
    assert [p for p in found if not p.exact] == []
    assert all(p.died for p in found), found
    assert any("move" in p.operation for p in found), found
