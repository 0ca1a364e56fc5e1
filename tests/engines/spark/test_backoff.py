"""Waits double up to a maximum."""

import re
from pathlib import Path

import barograph
from barograph.engines.spark.backoff import doubled_s


def test_doubled_up_to_the_longest() -> None:
    assert [doubled_s(0.5, n, 3.0) for n in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert doubled_s(0.1, 2) == 0.4
    assert doubled_s(1.0, 10_000, 30.0) == 30.0


def test_no_other_file_doubles_a_wait() -> None:
    root = Path(barograph.__file__).parent
    doubling = re.compile(r"\b2(\.0)? \*\*? ?(self\.)?_?(wait|failures|doublings)|wait\w* \* 2")
    files = [p for p in root.rglob("*.py") if p.name != "backoff.py"]
    assert files and [p.name for p in files if doubling.search(p.read_text(encoding="utf-8"))] == []
