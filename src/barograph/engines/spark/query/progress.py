"""Spark's progress reports of a query's epochs, kept as JSON text.

Making one of PySpark's progress objects takes dozens of calls into the driver's JVM, just when the query should
restart, and each call keeps an object alive there.
"""

import json

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery


def progress_texts(query: StreamingQuery) -> list[str]:
    return [str(progress.json()) for progress in query._jsq.recentProgress()]


def read_progress(text: str) -> StreamingQueryProgress:
    return StreamingQueryProgress.fromJson(json.loads(text))
