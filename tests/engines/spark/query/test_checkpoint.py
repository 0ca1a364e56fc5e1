"""Committed offsets of one and of several replay sources, and of topics."""

from pathlib import Path

import pytest

from barograph.engines.spark.query.checkpoint import committed_offsets

KAFKA = '{"lines":{"10":7,"2":5,"0":3},"a":{"0":1}}'


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["[3,4]"], (3, 4)),
        (["[3,4]", "[5]"], (3, 4, 5)),
        ([KAFKA], (1, 3, 5, 7)),
        (["[4]", KAFKA], (4, 1, 3, 5, 7)),
    ],
)
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
