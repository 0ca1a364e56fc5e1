"""Whether the application lives, as far as the bridge to its JVM tells."""

import errno
import os
from types import SimpleNamespace
from typing import cast

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from barograph.engines.spark.bridge.bridge import Bridge


def bridge(is_stopped: bool | Exception) -> Bridge:
    def answer() -> bool:
        if isinstance(is_stopped, Exception):
            raise is_stopped
        return is_stopped

    plugin = SimpleNamespace(plugin=SimpleNamespace(Bridge=None))
    spark = SimpleNamespace(
        _jsparkSession=SimpleNamespace(sparkContext=lambda: SimpleNamespace(isStopped=answer)),
        _jvm=SimpleNamespace(
            org=SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(barograph=plugin)))
        ),
        conf=SimpleNamespace(get=lambda *_: "org.apache.spark.barograph.BarographPlugin"),
        sparkContext=SimpleNamespace(master="local[2]"),
    )  # fmt: skip
    return Bridge(cast(SparkSession, spark))


@pytest.mark.parametrize(
    ("is_stopped", "lives"),
    [
        (False, True),
        (True, False),
        (Py4JNetworkError("Answer from Java side is empty"), False),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), False),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), True),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), True),
    ],
)
def test_an_application_that_cannot_be_asked_for_want_of_descriptors_has_not_ended(
    is_stopped: bool | Exception, lives: bool
) -> None:
    """Supervision and upkeep end with the application, so they must not end by a moment without a descriptor."""
    assert bridge(is_stopped).lives() is lives
