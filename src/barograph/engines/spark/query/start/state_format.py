"""Refuses settings with which the state of a query is not safe from an earlier driver. It changes nothing.

The lease keeps another driver from a checkpoint's logs, and no executor from its state. In format 2 of state
checkpoints every file of state has a name of its own, and only the log says which of them count. In format 1 the
executors of a driver that was stopped and wakes up could write over the state that its successor counts on.
"""

from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.start.prepared_start import PreparedStart
from barograph.model import BadInput

STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
# Without it Spark refuses format 1 in real-time mode; with it a checkpoint that is in format 1 also stays so.
FORMAT_1_ALLOWED = "spark.sql.streaming.realTimeMode.dangerouslyAllowCheckpointV1.enabled"


def require_own_state(start: DataStreamWriter | PreparedStart) -> None:
    """Also where a query has no state now: that cannot be asked before it is planned."""
    writer = start.writer if isinstance(start, PreparedStart) else start
    conf = writer._df.sparkSession.conf
    found = {key: str(conf.get(key, None)) for key in (STATE_FORMAT, FORMAT_1_ALLOWED)}
    wrong = [f"{key}={value}" for key, value in found.items() if value.strip().lower() in ("1", "true")]
    if wrong:
        raise BadInput(
            f"{' and '.join(wrong)}: in format 1 a driver that was stopped can write over the state of the next one: "
            f"set {STATE_FORMAT}=2 and leave {FORMAT_1_ALLOWED} out"
        )
