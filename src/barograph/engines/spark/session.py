"""A Spark session with Barograph's settings, in this process."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.conf import merged
from barograph.engines.spark.java import java_home


def open_session(name: str, *settings: Mapping[str, str]) -> SparkSession:
    """Start the driver. Later settings win over earlier ones."""
    os.environ["JAVA_HOME"] = str(java_home())
    logging = f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}"
    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # A driver plans and hands out tasks, a little of everything: the second compiler would take a whole core for
        # minutes, just when epochs begin, and save little afterwards.
        "spark.driver.extraJavaOptions": f"{logging} -XX:TieredStopAtLevel=1",
        "spark.driver.memory": "1g",
    }
    builder = SparkSession.builder.appName(name)
    for key, value in merged(quiet, *settings).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@contextmanager
def quiet_local(name: str) -> Iterator[SparkSession]:
    """Plain Spark in this process alone, for reading files; ended when the work is done."""
    os.environ["JAVA_HOME"] = str(java_home())
    logging = f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}"
    builder = SparkSession.builder.appName(name).master("local[*]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": logging,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def await_executors(spark: SparkSession, count: int, timeout_s: float = 90.0) -> None:
    """Wait until so many executors can take tasks."""
    deadline = time.monotonic() + timeout_s
    context = spark.sparkContext._jsc.sc()
    while (found := int(context.getExecutorIds().size())) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {found} of {count} executors came up within {timeout_s:g} s")
        time.sleep(0.05)


def real_time(writer: DataStreamWriter, epoch_s: float) -> DataStreamWriter:
    """Give a query the real-time trigger. (pyspark's type hints do not know it yet.)"""
    trigger: DataStreamWriter = writer.trigger(realTime=f"{round(epoch_s * 1000)} milliseconds")  # type: ignore[call-overload]
    return trigger
