"""The content of the replay source's rows, computed independently of ``jvm/source/Lines.scala``.

Row (partition, k) is a pure function of both and of the shape: partition p draws from splitmix64 seeded with draw p of
splitmix64(seed); line k takes the draws from k * q on, q = ceil(words_per_line / 4); every 16 bits of a draw, lowest
first, choose an entry of a table of 65,536 entries that are distributed over the words by Zipf's law. Rows depend on
integers only, and the table is computed with operations that every platform rounds in the same way.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from barograph.model.checks import require, require_number, require_whole

ENTRIES = 65536
_CONSONANTS = "bcdfghjklmnpqrstvwxz"
_VOWELS = "aeiou"
_SYLLABLES = [c + v for c in _CONSONANTS for v in _VOWELS]
_SKEW_PLACES = 20  # binary places of the exponent that are used

Draws = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class LineShape:
    """seed: of all draws. vocabulary: how many words there are. skew: Zipf's exponent, 0 for equal shares."""

    seed: int = 0
    words_per_line: int = 8
    vocabulary: int = 2000
    skew: float = 1.0

    def __post_init__(self) -> None:
        require_whole("seed", self.seed)
        require(self.seed < 2**63, f"seed must be below 2^63, not {self.seed}")
        require_whole("words_per_line", self.words_per_line, 1)
        require(self.words_per_line <= 1000, f"words_per_line must be at most 1000, not {self.words_per_line}")
        require_whole("vocabulary", self.vocabulary, 1)
        require(self.vocabulary <= ENTRIES, f"vocabulary must be at most {ENTRIES} words, not {self.vocabulary}")
        require_number("skew", self.skew)
        require(self.skew <= 8, f"skew must be at most 8, not {self.skew:g}")

    @property
    def draws_per_line(self) -> int:
        return -(-self.words_per_line // 4)

    def ranks(self, partition: int, k: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ranks of the words of many lines: one row for each k, one column for each position."""
        seed = int(draw(self.seed, np.array([partition], dtype=np.uint64))[0])
        first = k.astype(np.uint64) * np.uint64(self.draws_per_line)
        columns = []
        for position in range(self.words_per_line):
            bits = draw(seed, first + np.uint64(position // 4))
            columns.append((bits >> np.uint64(16 * (position % 4))) & np.uint64(0xFFFF))
        return table(self.vocabulary, self.skew)[np.stack(columns, axis=1).astype(np.int64)]

    def line(self, partition: int, k: int) -> str:
        return " ".join(word(int(rank)) for rank in self.ranks(partition, np.array([k]))[0])

    def number(self, partition: int, k: int) -> int:
        """The value of a row where the content is numbers: the rank of the first word its line would have."""
        return int(self.ranks(partition, np.array([k]))[0, 0])


def draw(seed: int, i: Draws) -> Draws:
    """Draws number i, from 0, of splitmix64 (Steele, Lea and Flood 2014)."""
    z = np.uint64(seed) + (i + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def word(rank: int) -> str:
    """The rank's number in bijective base 100, a syllable for each digit; so frequent words are short."""
    text, n = "", rank + 1
    while n > 0:
        n, digit = divmod(n - 1, len(_SYLLABLES))
        text = _SYLLABLES[digit] + text
    return text


@cache
def table(vocabulary: int, skew: float) -> NDArray[np.int64]:
    """Entry -> rank; the word of rank i has its share of the entries in proportion to 1 / (i + 1)^skew."""
    up_to, total = [], 0.0
    for rank in range(vocabulary):
        total += 1.0 / _power(rank + 1.0, skew)
        up_to.append(total)
    ends = [0, *(math.floor(share / total * ENTRIES) for share in up_to)]
    found = np.repeat(np.arange(vocabulary), np.diff(ends))
    found.setflags(write=False)
    return found


def _power(base: float, exponent: float) -> float:
    """By products and square roots only: every platform rounds these in the same way, unlike a library's pow."""
    scaled = math.floor(exponent * (1 << _SKEW_PLACES) + 0.5)
    result = 1.0
    for _ in range(scaled >> _SKEW_PLACES):
        result *= base
    root = base
    for bit in reversed(range(_SKEW_PLACES)):
        root = math.sqrt(root)
        if scaled >> bit & 1:
            result *= root
    return result
