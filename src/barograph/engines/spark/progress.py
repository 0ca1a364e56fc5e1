"""What Spark told of a query's epochs, kept as the text it is.

As objects of PySpark each takes dozens of calls to make, in the very moment in which the next life should begin, and
keeps others alive on the driver's Java side.
"""

import json

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery


def told_progress(query: StreamingQuery) -> list[str]:
    return [str(progress.json()) for progress in query._jsq.recentProgress()]


def read_progress(text: str) -> StreamingQueryProgress:
    return StreamingQueryProgress.fromJson(json.loads(text))
