"""What a workload is: a streaming query whose result can be checked exactly.

``barograph run``, the test cluster and the benchmarks know a workload only by this value. A workload is a module with
the functions below and one ``Workload`` that names them; ``registry`` lists it. docs/add-a-workload.md shows how.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from barograph.engines.spark.query.naming import named
from barograph.model import Topology
from barograph.model.checks import require
from barograph.workloads.keyed_counts import KeyedCounts
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import Replay
from barograph.workloads.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

NO_BUSY_WORK: Mapping[str, int] = {}

Inputs = Callable[[Replay, Mapping[str, int]], tuple[Replay, ...]]
Due = Callable[["SparkSession", Sequence[Replay], Sequence[int]], KeyedCounts]
Counted = Callable[["SparkSession", str], KeyedCounts]


def unchanged(frame: "DataFrame") -> "DataFrame":
    """The ``tamper`` of a query that is not tampered with."""
    return frame


class BuildQuery(Protocol):
    """Builds the query, without checkpoint and trigger. It is called again each time the query is restarted.

    busy_us: CPU microseconds that each row additionally costs an operator. tamper: changes the rows of one operator, so
    that tests can check that the verdict notices it. name: gives an operator its name; on Spark without the plug-in it
    does nothing, because there a name is a plan node that costs time. out: a topic for the result; None: none.
    """

    def __call__(
        self,
        spark: "SparkSession",
        inputs: Sequence[Replay],
        parallelism: Mapping[str, int],
        busy_us: Mapping[str, int] = NO_BUSY_WORK,
        tamper: Callable[["DataFrame"], "DataFrame"] = unchanged,
        name: Callable[["DataFrame", str], "DataFrame"] = named,
        out: Topic | None = None,
    ) -> "DataStreamWriter": ...


@dataclass(frozen=True)
class Workload:
    """A workload.

    name: on the command line, and of its topology. meaning: one line for people.
    default_parallelism: instances of every operator. default_load: rows a second of each input, as ``--load`` has it.
    busy: the operators that ``--busy`` can give additional CPU work.
    inputs: the replay sources, given the load and the parallelism; each input has its own content and partitions, and
    all of them follow the load. results_per_row: rows that leave the query for each row of an input.
    topology: what the planner will find, known beforehand, so that a first placement can be made before the query
    starts. It raises BadInput for an impossible parallelism.
    due: the exact result, computed from the inputs alone, given how many rows of each partition were read (partitions
    of all inputs, one after the other). counted: the result that the query has reached, read from its checkpoint.
    """

    name: str
    meaning: str
    default_parallelism: Mapping[str, int]
    default_load: str
    busy: tuple[str, ...]
    topology: Callable[[Mapping[str, int]], Topology]
    inputs: Inputs
    results_per_row: Callable[[LineShape], int]
    query: BuildQuery
    due: Due
    counted: Counted

    def stateful(self) -> tuple[str, ...]:
        """The operators that have state."""
        return tuple(o.name for o in self.topology(self.default_parallelism).operators if o.stateful)

    def require_operators(self, what: str, operators: Mapping[str, object]) -> None:
        """Refuse names that are no operators of this workload. what: the setting that names them."""
        for operator in operators:
            known = ", ".join(self.default_parallelism)
            require(
                operator in self.default_parallelism,
                f"{what}: {self.name} has no operator {operator!r}: write one of {known}",
            )

    def require_busy(self, what: str, operators: Mapping[str, object]) -> None:
        """Refuse operators that cannot have busy work. what: the setting that names them."""
        for operator in operators:
            able = " and ".join(self.busy)
            text = f"{what}: only {able} of {self.name} can have busy work, not {operator!r}"
            require(operator in self.busy, text)


def rows_due(inputs: Sequence[Replay]) -> int:
    """Rows of all inputs until they close."""
    return sum(sum(replay.rows()) for replay in inputs)


def split_by_input(inputs: Sequence[Replay], read: Sequence[int]) -> list[tuple[int, ...]]:
    """Rows read of each partition, input by input. Nothing was read where ``read`` is empty."""
    counts, found, at = list(read) or [0] * sum(r.partitions for r in inputs), [], 0
    for replay in inputs:
        found.append(tuple(counts[at : at + replay.partitions]))
        at += replay.partitions
    require(at == len(counts), f"{len(counts)} partitions were read and the inputs have {at}")
    return found
