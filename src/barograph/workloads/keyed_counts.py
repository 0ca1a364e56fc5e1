"""Rows counted by key, with a checksum for each key: what a workload's result is compared by.

For each key: how many rows it has, and the XOR of a 64-bit hash of every row's position in the input. A lost or
repeated row changes the count; a row that is counted in place of another changes the checksum.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT_SQL = "count(1) as occurrences"
"""The count of each key; beside it a query aggregates ``bit_xor(...) as checksum``."""


@dataclass(frozen=True)
class KeyedCounts:
    """rows: of the input. occurrences, checksums: of each key that has any row."""

    rows: int
    occurrences: Mapping[str, int]
    checksums: Mapping[str, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "occurrences", MappingProxyType(dict(self.occurrences)))
        object.__setattr__(self, "checksums", MappingProxyType(dict(self.checksums)))

    @property
    def total(self) -> int:
        return sum(self.occurrences.values())

    def faults(self, found: "KeyedCounts") -> tuple[str, ...]:
        """What is wrong with a result, key by key; empty where it is exact. Input rows are not compared: a query
        that counts by key does not see them."""
        faults = []
        for name in sorted({*self.occurrences, *found.occurrences}):
            due, seen = self.occurrences.get(name, 0), found.occurrences.get(name, 0)
            if due != seen:
                faults.append(f"{name}: {seen} instead of {due}")
            elif self.checksums[name] != found.checksums.get(name):
                faults.append(f"{name}: {seen} as expected, but other rows")
        return tuple(faults)


def counts_of(rows: int, by_key: Iterable[tuple[str, int, int]]) -> KeyedCounts:
    """From (key, occurrences, checksum), as a query collects them."""
    listed = list(by_key)
    return KeyedCounts(rows, {key: n for key, n, _ in listed}, {key: c for key, _, c in listed})


def counts_in_state(spark: "SparkSession", checkpoint: str, key_sql: str, epoch: int | None = None) -> KeyedCounts:
    """From the state of a query that aggregates count and bit_xor. key_sql: the key as text, from ``key.COLUMN``.

    epoch: at the end of this epoch, which a running query has committed; by default at the end of the last one."""
    options = {} if epoch is None else {"batchId": str(epoch)}
    state = spark.read.format("statestore").options(**options).load(checkpoint)
    found = state.selectExpr(f"{key_sql} as name", "value.count as n", "value.bit_xor as checksum").collect()
    return counts_of(0, ((r["name"], r["n"], r["checksum"]) for r in found))
