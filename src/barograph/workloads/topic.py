"""A topic that carries the rows of an input: row (partition, k) is the record at offset k of the partition.

The record's time is when the row is due, its value the line, or the number as text. Which program writes it is
decided elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Topic:
    """brokers: their addresses. client: options of Kafka's clients, such as a login."""

    name: str
    brokers: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    def options(self) -> dict[str, str]:
        """Of Spark's Kafka source and sink: how brokers are reached."""
        return {"kafka.bootstrap.servers": self.brokers, **{f"kafka.{name}": v for name, v in self.client.items()}}

    def read(self, spark: "SparkSession", numbers: bool) -> "DataFrame":
        """A stream with the columns of the replay source. A record does not say when it was read, so that is asked of
        the clock, for each row."""
        text = "cast(value as string)"
        rows = spark.readStream.format("kafka").options(**self.options())
        return (
            rows.option("subscribe", self.name)
            .option("startingOffsets", "earliest")
            .load()
            .selectExpr(
                "partition",
                "offset as k",
                "unix_millis(timestamp) as due_ms",
                f"{f'cast({text} as long)' if numbers else text} as value",
                "cast(reflect('java.lang.System', 'currentTimeMillis') as long) as read_ms",
            )
        )
