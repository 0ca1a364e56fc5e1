"""The exact result of a word count over a finite load.

It is computed in two independent ways: by Spark, which reads the load as a batch (for loads of any size), and by numpy
(to test the former).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from barograph.workloads.keyed_counts import COUNT_SQL, KeyedCounts, counts_of
from barograph.workloads.lines import word
from barograph.workloads.parts import read_as_batch
from barograph.workloads.replay import Replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORDS_SQL = ("partition", "k", "due_ms", "posexplode(split(value, ' ')) as (position, word)")
"""Lines to words; for ``selectExpr``."""
CHECKSUM_SQL = "bit_xor(xxhash64(partition, k, position)) as checksum"


def truth_by_spark(spark: "SparkSession", replay: Replay, until_rows: Sequence[int] | None = None) -> KeyedCounts:
    """Read the whole load as a batch, with the same SQL as the stream. until_rows: of each partition, at most."""
    from pyspark.sql.functions import expr

    words = read_as_batch(spark, replay, until_rows).selectExpr(*WORDS_SQL)
    found = words.groupBy("word").agg(expr(COUNT_SQL), expr(CHECKSUM_SQL)).collect()
    return counts_of(sum(replay.rows(until_rows)), ((r["word"], r["occurrences"], r["checksum"]) for r in found))


def truth_by_numpy(replay: Replay, until_rows: Sequence[int] | None = None) -> KeyedCounts:
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
    return KeyedCounts(
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
