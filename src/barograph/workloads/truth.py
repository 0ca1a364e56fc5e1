"""What a word count over a finite load must come to, to the last row.

For each word: how often it occurs, and the XOR of a 64-bit hash of every occurrence's (partition, k, position). A
streaming query that computes the same two with the SQL here was exact if they are equal: a row lost or doubled changes
the count, and one in another's place the checksum. Two independent ways to the truth: Spark itself, reading the load
as a batch (for loads of any size), and numpy (for tests of the former).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from barograph.workloads.lines import word
from barograph.workloads.replay import FORMAT, Replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORDS_SQL = ("partition", "k", "due_ms", "posexplode(split(value, ' ')) as (position, word)")
"""Lines to words; for ``selectExpr``."""
COUNT_SQL = "count(1) as occurrences"
CHECKSUM_SQL = "bit_xor(xxhash64(partition, k, position)) as checksum"
"""The two aggregates of each word; for ``groupBy("word").agg(expr(...), expr(...))``."""


@dataclass(frozen=True)
class WordTruth:
    """lines: rows of the load. occurrences, checksums: of each word that occurs at all."""

    lines: int
    occurrences: Mapping[str, int]
    checksums: Mapping[str, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "occurrences", MappingProxyType(dict(self.occurrences)))
        object.__setattr__(self, "checksums", MappingProxyType(dict(self.checksums)))

    @property
    def words(self) -> int:
        return sum(self.occurrences.values())

    def faults(self, found: "WordTruth") -> tuple[str, ...]:
        """What is wrong with a result, word by word; empty where it is exact. The lines of a result are not compared:
        a query that counts words does not see them."""
        faults = []
        for name in sorted({*self.occurrences, *found.occurrences}):
            due, seen = self.occurrences.get(name, 0), found.occurrences.get(name, 0)
            if due != seen:
                faults.append(f"{name}: {seen} instead of {due}")
            elif self.checksums[name] != found.checksums.get(name):
                faults.append(f"{name}: {seen} as expected, but not the same ones")
        return tuple(faults)


def truth_of_rows(lines: int, rows: Iterable[tuple[str, int, int]]) -> WordTruth:
    """From (word, occurrences, checksum), as a query with the SQL above collects them."""
    listed = list(rows)
    return WordTruth(lines, {w: n for w, n, _ in listed}, {w: c for w, _, c in listed})


def truth_by_spark(spark: "SparkSession", replay: Replay, until_rows: Sequence[int] | None = None) -> WordTruth:
    """Read the whole load as a batch, with the same SQL as the stream. until_rows: of each partition, at most."""
    from pyspark.sql.functions import expr

    counts = replay.rows(until_rows)
    options = replay.options() | {"until_rows": ",".join(str(n) for n in counts)}
    words = spark.read.format(FORMAT).options(**options).load().selectExpr(*WORDS_SQL)
    found = words.groupBy("word").agg(expr(COUNT_SQL), expr(CHECKSUM_SQL)).collect()
    return truth_of_rows(sum(counts), ((r["word"], r["occurrences"], r["checksum"]) for r in found))


def truth_by_numpy(replay: Replay, until_rows: Sequence[int] | None = None) -> WordTruth:
    """The same without Spark; holds every word of the load in memory."""
    vocabulary = replay.lines.vocabulary
    occurrences = np.zeros(vocabulary, dtype=np.int64)
    checksums = np.zeros(vocabulary, dtype=np.uint64)
    counts = replay.rows(until_rows)
    for partition, count in enumerate(counts):
        k = np.arange(count, dtype=np.int64)
        ranks = replay.lines.ranks(partition, k)
        for position in range(replay.lines.words_per_line):
            np.add.at(occurrences, ranks[:, position], 1)
            np.bitwise_xor.at(checksums, ranks[:, position], _row_hash(partition, k, position))
    seen = np.flatnonzero(occurrences)
    signed = checksums.view(np.int64)
    return WordTruth(
        sum(counts), {word(int(r)): int(occurrences[r]) for r in seen}, {word(int(r)): int(signed[r]) for r in seen}
    )


_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(p)
    for p in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)


def _row_hash(partition: int, k: NDArray[np.int64], position: int) -> NDArray[np.uint64]:
    """Spark's xxhash64(partition, k, position): XXH64 of each value, seeded with the hash so far, at first 42."""
    first = _hash_int(np.uint64(partition), np.full(k.shape, 42, dtype=np.uint64))
    return _hash_int(np.uint64(position), _hash_long(k.astype(np.uint64), first))


def _hash_int(value: np.uint64, seed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        h = (seed + _P5 + np.uint64(4)) ^ (value * _P1)
    return _avalanche(_rotate(h, 23) * _P2 + _P3)


def _hash_long(value: NDArray[np.uint64], seed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    h = (seed + _P5 + np.uint64(8)) ^ (_rotate(value * _P2, 31) * _P1)
    return _avalanche(_rotate(h, 27) * _P1 + _P4)


def _rotate(value: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


def _avalanche(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))
