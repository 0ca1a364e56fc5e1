"""Starts one run of a query, and leaves none that nobody knows: what fails after Spark's start stops it again."""

import logging

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.failures.ownership import other_owner
from barograph.engines.spark.query.start.first_size import FirstSize
from barograph.engines.spark.query.start.prepared_start import PreparedStart, starting_a_run
from barograph.engines.spark.tolerated import tolerated
from barograph.model import BadInput

log = logging.getLogger(__name__)


def started_run(writer: DataStreamWriter | PreparedStart, size: FirstSize) -> tuple[StreamingQuery, str]:
    """The run and Spark's id of it."""
    query: StreamingQuery | None = None
    try:
        with starting_a_run(), size.at_start(writer):
            query = writer.start()
        return query, str(query.runId)
    except BaseException as error:
        if query is not None:
            stop_anyway(query, "a query that has just started")
        if isinstance(error, PySparkException) and (taken := other_owner(str(error))):
            raise BadInput(taken) from None
        raise


def stop_anyway(query: StreamingQuery, name: str) -> None:
    """Something else has failed already: that it cannot be stopped is a warning."""
    with tolerated(log, f"{name} could not be stopped", Exception):
        query.stop()
