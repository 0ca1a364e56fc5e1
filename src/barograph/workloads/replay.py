"""One input of a workload: when its rows fall due and what they contain, as options of the replay source."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from barograph.model import Schedule
from barograph.model.checks import require, require_number, require_whole
from barograph.model.loads.schedule import encode
from barograph.workloads.lines import LineShape
from barograph.workloads.topic import Topic

FORMAT = "org.apache.spark.barograph.ReplaySource"
"""The source's name for Spark. Columns: partition, k, due_ms (epoch milliseconds), value."""


@dataclass(frozen=True)
class Replay:
    """Rows spread over ``partitions``. close_s: the input ends after so many seconds of the load; None: never.

    numbers: values are numbers from 0 to vocabulary - 1 instead of lines of words.
    start_ms: when the load starts, milliseconds since 1970; None: half a second after the query starts. A restarted
    query uses the start that is recorded in its checkpoint.
    read_time: rows also have the column read_ms, when the source emitted them.
    topic: streams read the rows from there; None: from the replay source. A batch reads the replay source.
    """

    schedule: Schedule
    partitions: int = 1
    lines: LineShape = field(default_factory=LineShape)
    numbers: bool = False
    close_s: float | None = None
    start_ms: int | None = None
    read_time: bool = False
    topic: Topic | None = None

    def __post_init__(self) -> None:
        require_whole("partitions", self.partitions, 1)
        if self.close_s is not None:
            require_number("close_s", self.close_s)
        if self.start_ms is not None:
            require_whole("start_ms", self.start_ms)

    def options(self) -> dict[str, str]:
        """For ``spark.readStream.format(FORMAT).options(**...)``, and for a batch read of the same rows."""
        options = {
            "segments": encode(self.schedule.segments),
            "partitions": str(self.partitions),
            "seed": str(self.lines.seed),
            "words_per_line": str(self.lines.words_per_line),
            "vocabulary": str(self.lines.vocabulary),
            "skew": repr(float(self.lines.skew)),
            "content": "numbers" if self.numbers else "text",
        }
        if self.read_time:
            options["read_time"] = "true"
        if self.close_s is not None:
            options["close_s"] = repr(float(self.close_s))
        if self.start_ms is not None:
            options["start_ms"] = str(self.start_ms)
        return options

    def rows(self, until_rows: Sequence[int] | None = None) -> tuple[int, ...]:
        """How many rows each partition has until it ends, or the given counts where these are smaller."""
        require(
            self.close_s is not None or until_rows is not None,
            "a load that never ends has no last row: give close_s or until_rows",
        )
        if until_rows is not None:
            require(
                len(until_rows) == self.partitions,
                f"until_rows has {len(until_rows)} counts for {self.partitions} partitions",
            )
        counts = []
        for p in range(self.partitions):
            limits = [] if until_rows is None else [until_rows[p]]
            if self.close_s is not None:
                limits.append(self.schedule.rows_until(p, self.partitions, self.close_s))
            counts.append(min(limits))
        return tuple(counts)
