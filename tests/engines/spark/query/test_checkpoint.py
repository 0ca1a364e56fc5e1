"""Committed offsets of one and of several replay sources."""

from pathlib import Path

import pytest

from barograph.engines.spark.query.checkpoint import committed_offsets


@pytest.mark.parametrize(("sources", "expected"), [(["[3,4]"], (3, 4)), (["[3,4]", "[5]"], (3, 4, 5))])
def test_offsets_of_all_sources_follow_each_other(
    tmp_path: Path, sources: list[str], expected: tuple[int, ...]
) -> None:
    assert committed_offsets(tmp_path) == ()
    for folder in ("commits", "offsets"):
        (tmp_path / folder).mkdir()
    (tmp_path / "commits" / "7").touch()
    (tmp_path / "offsets" / "7").write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *sources]))
    (tmp_path / "offsets" / "8").write_text("\n".join(["v1", "{}", *(["[9,9]"] * len(sources))]))
    assert committed_offsets(tmp_path) == expected
