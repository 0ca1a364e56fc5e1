"""A driver that is killed before any operation on its checkpoint's files leaves a checkpoint that is exact."""

from pathlib import Path

import pytest

from barograph.testing.crash_points import copied_points, crash_points

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_what_a_killed_driver_leaves_is_exact(tmp_path: Path) -> None:
    """Some of the points, by real kills."""
    found = list(crash_points(tmp_path, (("commit", 4), ("rescale", 6), ("undo", 3))))
    assert [p for p in found if not p.exact] == []
    assert all(p.died for p in found), found
    assert any("move" in p.operation for p in found), found


def test_what_is_there_before_every_operation_is_exact(tmp_path: Path) -> None:
    """All of them, by copies of the checkpoint."""
    found = list(copied_points(tmp_path))
    assert [p for p in found if not p.exact] == []
    moved = [p.operation for p in found if " move " in p.operation]
    assert all(any(log in operation for operation in moved) for log in ("/offsets/", "/commits/", "/state/")), found
    undone = [p.operation for p in found if p.work == "undo"]
    assert any(" delete " in operation and "/offsets/" in operation for operation in undone), undone
