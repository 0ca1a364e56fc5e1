import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.model import BadInput
from barograph.model.loads.shapes import _splitmix64
from barograph.workloads.lines import LineShape, draw, table, word

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "replay.json").read_text())


@pytest.mark.parametrize("v", VECTORS["lines"], ids=lambda v: f"seed {v['seed']}, row {v['partition']}/{v['k']}")
def test_lines_are_those_of_the_vectors(v: dict[str, int | float | str]) -> None:
    shape = LineShape(int(v["seed"]), int(v["words_per_line"]), int(v["vocabulary"]), float(v["skew"]))
    assert shape.line(int(v["partition"]), int(v["k"])) == v["line"]
    assert shape.number(int(v["partition"]), int(v["k"])) == v["number"]


def test_draws_are_those_of_the_generator() -> None:
    stream = _splitmix64(7)
    assert [int(d) for d in draw(7, np.arange(5, dtype=np.uint64))] == [next(stream) for _ in range(5)]


def test_a_line_taken_apart_by_hand() -> None:
    shape = LineShape(seed=7, words_per_line=6)
    stream = _splitmix64(7)
    seeds = [next(stream) for _ in range(3)]
    draws = _splitmix64(seeds[2])
    taken = [next(draws) for _ in range(10)][8:]  # line 4 of partition 2: two draws a line
    entries = [taken[j // 4] >> 16 * (j % 4) & 0xFFFF for j in range(6)]
    assert shape.line(2, 4) == " ".join(word(int(table(2000, 1.0)[e])) for e in entries)


def test_words_are_all_different_and_frequent_ones_are_short() -> None:
    words = [word(rank) for rank in range(65536)]
    assert len(set(words)) == 65536
    assert [len(words[rank]) for rank in (0, 99, 100, 10_099, 10_100, 65_535)] == [2, 2, 4, 4, 6, 6]


SHARES = {
    "equal": (4, 0.0, [16384, 16384, 16384, 16384]),
    "zipf": (3, 1.0, [35746, 17874, 11916]),  # 1 : 1/2 : 1/3 end at 35746.9, 53620.4 and 65536
    "square root": (2, 0.5, [38390, 27146]),  # 1 : 0.7071
    "one word": (1, 3.0, [65536]),
}


@pytest.mark.parametrize(("vocabulary", "skew", "shares"), SHARES.values(), ids=SHARES)
def test_entries_follow_zipf(vocabulary: int, skew: float, shares: list[int]) -> None:
    counts = Counter(int(rank) for rank in table(vocabulary, skew))
    assert [counts[rank] for rank in range(vocabulary)] == shares


@settings(deadline=None)  # the first table of a process takes a while to make
@given(st.integers(1, 3000), st.floats(0, 8))
def test_every_entry_has_a_word(vocabulary: int, skew: float) -> None:
    found = table(vocabulary, skew)
    assert found.shape == (65536,)
    assert found[0] == 0
    assert 0 <= found.max() < vocabulary


BAD = {
    "seed": {"seed": -1},
    "large seed": {"seed": 2**63},
    "no words": {"words_per_line": 0},
    "vocabulary": {"vocabulary": 65537},
    "skew": {"skew": -0.5},
}


@pytest.mark.parametrize("fields", BAD.values(), ids=BAD)
def test_bad_shapes_are_refused(fields: dict[str, int]) -> None:
    with pytest.raises(BadInput, match=next(iter(fields))):
        LineShape(**fields)
