"""Which errors that end a program are the user's to mend, and what to do about each: one sentence instead of a trace.

The JVM may have ended with the program, so what it would have to be asked for is left out then.
"""

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from barograph.engines.spark.query.failures.kafka_errors import kafka_error
from barograph.model import BadInput


def sentence_for(error: BaseException) -> str:
    """What is wrong and what to do; empty where the error says that best itself."""
    if isinstance(error, BadInput):
        return str(error)
    return sentence_of_text(_text(error))


def sentence_of_text(text: str) -> str:
    """text: an error of Spark or Java, with its causes."""
    found = kafka_error(text, has_run=False)
    return "" if found is None else f"{found.text} ({found.said.rstrip('. ')})"


def _text(error: BaseException) -> str:
    """Empty where it is not of Spark: a program's own errors are never explained."""
    if isinstance(error, CapturedException):
        # Its stack has the causes, which Spark's message often lacks.
        return f"{error._desc}\n{error._stackTrace}"
    if isinstance(error, Py4JJavaError):
        try:
            return str(error)  # asks the JVM for the stack
        except Exception:  # noqa: BLE001  # without a JVM there is nothing to read
            return ""
    return ""
