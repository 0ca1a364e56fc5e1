"""Refuses a query whose trigger is not real-time, before it is started. It changes nothing."""

from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.query.start.prepared_start import PreparedStart
from barograph.model import BadInput

REAL_TIME = "RealTimeTrigger"


def require_real_time(start: DataStreamWriter | PreparedStart) -> None:
    """Only in real-time mode do instances run side by side in seats of their own, so that they can be moved."""
    trigger = trigger_of(start.writer if isinstance(start, PreparedStart) else start)
    if trigger != REAL_TIME:
        raise BadInput(
            f"Barograph keeps queries in real-time mode only, and this one has the trigger {trigger}: add "
            ".trigger(realTime='60 seconds'), or start it with its own start()"
        )


def trigger_of(writer: DataStreamWriter) -> str:
    """The name of its class, such as ProcessingTimeTrigger. A writer has no public way to ask for it."""
    found = writer._jwrite.getClass().getDeclaredField("trigger")
    found.setAccessible(True)
    return str(found.get(writer._jwrite).getClass().getSimpleName()).rstrip("$")
