"""Whether the topic that a run writes has every result: at least once, and how often more than once.

A workload that counts writes a row for each row that it counts, with the count so far. So the numbers from 1 to the
final count of each key must be there; those that are there again were written again by a restart.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from barograph.workloads.keyed_counts import KeyedCounts
from barograph.workloads.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class OutputVerdict:
    """In rows of the topic. missing: results that are not there. wrong: counts that are higher than they may be, or of
    keys that do not exist."""

    rows: int
    missing: int
    repeated: int
    wrong: int

    @property
    def is_complete(self) -> bool:
        return self.missing == 0 and self.wrong == 0

    def to_json(self) -> dict[str, int]:
        return asdict(self)


def judge_output(due: KeyedCounts, found: Iterable[tuple[str, int, int, int]]) -> OutputVerdict:
    """found: for each key its rows, its different counts, and its highest one."""
    rows = repeated = wrong = 0
    there: dict[str, int] = {}
    for key, count, different, highest in found:
        beyond = max(0, highest - due.occurrences.get(key, 0))
        rows, repeated, wrong = rows + count, repeated + count - different, wrong + beyond
        there[key] = different - min(beyond, different)
    missing = sum(n - min(n, there.get(key, 0)) for key, n in due.occurrences.items())
    return OutputVerdict(rows, missing, repeated, wrong)


def counts_in_topic(spark: "SparkSession", topic: Topic) -> list[tuple[str, int, int, int]]:
    """Read the whole topic, for ``judge_output``."""
    rows = spark.read.format("kafka").options(**topic.options()).option("subscribe", topic.name).load()
    rows = rows.selectExpr("cast(key as string) as name", "cast(cast(value as string) as long) as n")
    rows.createOrReplaceTempView("barograph_output")
    sql = "select name, count(1), count(distinct n), max(n) from barograph_output group by name"
    return [(r[0], int(r[1]), int(r[2]), int(r[3])) for r in spark.sql(sql).collect()]
