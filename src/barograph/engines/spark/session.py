"""Spark sessions with Barograph's settings, in this process."""

import contextlib
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.cluster.java import java_home
from barograph.engines.spark.cluster.runs import run_of
from barograph.engines.spark.conf import merged
from barograph.engines.spark.security.callbacks import guard_callbacks
from barograph.engines.spark.security.closed_driver import CLOSED_LOCAL, NO_PAGES, OWNERS_FILES
from barograph.engines.spark.security.secret import read_secret
from barograph.model import BadInput

# Settings of the JVM itself, and of the command that starts it.
_AT_START = ("spark.driver.", "spark.jars", "spark.master", "spark.app.name")


def open_session(
    name: str, *settings: Mapping[str, str], log: Path | None = None, properties: Path | None = None
) -> SparkSession:
    """Start the driver. Later settings win over earlier ones. log: for what its JVM writes; None: standard error.

    properties: a file with further settings, as spark-submit takes one; all others win over it.
    """
    os.environ["JAVA_HOME"] = str(java_home())
    logging = f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}"
    quiet = {
        **NO_PAGES,
        **OWNERS_FILES,
        "spark.ui.showConsoleProgress": "false",
        # A driver runs little code often: the C2 compiler would take a whole core for minutes, just when epochs begin,
        # and save little afterwards.
        "spark.driver.extraJavaOptions": f"{logging} -XX:TieredStopAtLevel=1",
        "spark.driver.memory": "1g",
    }
    chosen = merged(quiet, *settings)
    _start_jvm({"spark.app.name": name, **chosen}, log, properties)
    cluster = run_of(chosen["spark.master"]) if "spark.master" in chosen else None
    secret = {} if cluster is None else read_secret(cluster.folder)
    builder = SparkSession.builder.appName(name)
    for key, value in (chosen | secret).items():
        builder = builder.config(key, value)
    with refusals_told(lambda: chosen.get("spark.master", "")):
        return builder.getOrCreate()


@contextmanager
def refusals_told(master_of: Callable[[], str]) -> Iterator[None]:
    """Around the start of a session: that a standalone master does not take the application becomes one sentence.

    Spark's own error says only that its context was stopped meanwhile. master_of: asked after such an error."""
    try:
        yield
    except Py4JJavaError as error:
        master = master_of()
        if not master.startswith("spark://") or "stopped SparkContext" not in str(error):
            raise
        raise BadInput(
            f"{master} did not take the application: either the cluster asks for a secret (spark.authenticate and "
            "spark.authenticate.secret, in a file that you name with --properties-file), or its Spark is another "
            "version, or it does not reach this machine (spark.driver.host)"
        ) from None


def _start_jvm(settings: Mapping[str, str], log: Path | None, properties: Path | None = None) -> None:
    """Start the driver's JVM, if it does not run yet, with its output in a file, or with ours.

    Only what it needs at its start is on its command line: what is there holds for every later session of this process
    too, and every user of the machine can read it. The rest goes to the running JVM by its gateway.
    """
    guard_callbacks()
    if SparkContext._gateway is not None:
        return
    if properties is not None:  # its content, which may be a secret, is on no command line
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {shlex.quote(str(properties))} pyspark-shell"
    conf = SparkConf().setAll([(key, value) for key, value in settings.items() if key.startswith(_AT_START)])
    with contextlib.nullcontext() if log is None else log.open("ab") as out:
        output = {} if out is None else {"stdout": out, "stderr": subprocess.STDOUT}
        gateway = launch_gateway(conf, {"umask": 0o077, **output})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def quiet_local(name: str, log: Path) -> Iterator[SparkSession]:
    """Spark in this process alone, for reading files; it is stopped at the end of the block. log: for its output."""
    os.environ["JAVA_HOME"] = str(java_home())
    logging = f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}"
    chosen = {
        **CLOSED_LOCAL,
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": logging,
        "spark.sql.shuffle.partitions": "2",
    }
    _start_jvm({"spark.app.name": name, "spark.master": "local[*]", **chosen}, log)
    builder = SparkSession.builder.appName(name).master("local[*]")
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def await_executors(spark: SparkSession, count: int, timeout_s: float = 90.0) -> None:
    """Wait until ``count`` executors can take tasks."""
    deadline = time.monotonic() + timeout_s
    context = spark.sparkContext._jsc.sc()
    while (found := int(context.getExecutorIds().size())) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {found} of {count} executors came up within {timeout_s:g} s")
        time.sleep(0.05)


def await_steady(spark: SparkSession, steady_s: float = 5.0, timeout_s: float = 180.0) -> int:
    """Wait until the executors that the session asks for can take tasks; if their number is not known, until there is
    one and no other has come for a while. Returns how many there are at the end of the time, however few."""
    wanted = int(spark.sparkContext.getConf().get("spark.executor.instances", "0") or 0)
    context, began_s = spark.sparkContext._jsc.sc(), time.monotonic()
    found, since_s = 0, began_s
    while time.monotonic() - began_s < timeout_s:
        now = int(context.getExecutorIds().size())
        if now != found:
            found, since_s = now, time.monotonic()
        if found >= wanted > 0 or (found > 0 and not wanted and time.monotonic() - since_s >= steady_s):
            break
        time.sleep(0.05)
    return found


def real_time(writer: DataStreamWriter, epoch_s: float) -> DataStreamWriter:
    """Set the real-time trigger. (pyspark's type hints do not have it yet.)"""
    trigger: DataStreamWriter = writer.trigger(realTime=f"{round(epoch_s * 1000)} milliseconds")  # type: ignore[call-overload]
    return trigger
