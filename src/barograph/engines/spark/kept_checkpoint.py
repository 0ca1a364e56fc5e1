"""Where a query keeps its checkpoint, as Spark resolved it. Without one that is kept it cannot be started again."""

from pyspark.sql.streaming.query import StreamingQuery

from barograph.model import BadInput


def checkpoint_of(query: StreamingQuery) -> str:
    """The folder, as Spark resolved it."""
    execution = query._jsq.streamingQuery() if hasattr(query._jsq, "streamingQuery") else query._jsq
    return str(execution.resolvedCheckpointRoot())


def require_kept_checkpoint(query: StreamingQuery) -> None:
    """Without a checkpoint of its own every life would begin from nothing."""
    if "/temporary-" in checkpoint_of(query):
        query.stop()
        raise BadInput("a supervised query needs a checkpoint: .option('checkpointLocation', FOLDER)")
