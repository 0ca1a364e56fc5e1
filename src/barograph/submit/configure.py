"""Barograph's settings for a session that a notebook or a program makes itself: ``barograph.configure``."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pyspark import SparkContext
from pyspark.sql import SparkSession

from barograph.config import resolve
from barograph.config.option import Scope
from barograph.engines.spark.cluster.java import java_home, pyspark_home
from barograph.engines.spark.conf import plugin_settings
from barograph.engines.spark.local_seats import LOCAL, own_cores, roomy_master, told
from barograph.model import BadInput
from barograph.submit.connect import refuse_connect
from barograph.submit.properties import conf_folder, spark_defaults
from barograph.submit.session_settings import settings_for
from barograph.submit.settings import PLUGINS, added

PLUGIN = "org.apache.spark.barograph.BarographPlugin"
_CONTEXT = "barograph.configure comes before the first Spark session of a process"
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"

# pyspark's builder is a nested class, and any subclass of it comes back as what it is.
Builder = TypeVar("Builder", bound=SparkSession.Builder)


def configure(builder: Builder, config: Path | None = None) -> Builder:
    """The builder with Barograph's settings added, its own kept. config: of options; None: as ``resolve`` has it."""
    options = {str(key): str(value) for key, value in builder._options.items()}
    refuse_connect(options)
    _refuse_running()
    _refuse_jars_argument(os.environ.get(_ARGUMENTS, ""))
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    # What the builder says is passed to spark-submit as --conf, which wins over its files.
    theirs = {**spark_defaults(conf_folder(pyspark_home())), **options}
    for key, value in added(theirs, settings_for(our_settings(config), theirs.get("spark.master", ""))).items():
        builder.config(key, value)
    if _leaves_seats_to_spark(theirs, os.environ):
        builder.master(roomy_master(own_cores()))
        sys.stderr.write(f"barograph: the master is {told(own_cores())}: set .master(...) for another\n")
    return builder


def our_settings(config: Path | None = None) -> dict[str, str]:
    """The hooks, the jar for all executors, and the options of queries and controllers that the configuration sets."""
    return {**plugin_settings(ship=True), **resolve(config).spark_settings((Scope.QUERY, Scope.CONTROLLER))}


def _leaves_seats_to_spark(theirs: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether the master is local with a seat for each core. A program that spark-submit started has one already."""
    if "spark.master" in theirs:
        return theirs["spark.master"] == LOCAL
    words = environment.get(_ARGUMENTS, "")
    return "PYSPARK_GATEWAY_PORT" not in environment and "MASTER" not in environment and "master" not in words


def _refuse_running() -> None:
    present = SparkContext._active_spark_context
    if present is not None:
        if has_plugin(dict(present.getConf().getAll())):
            return
        raise BadInput(
            f"a Spark session runs already, without Barograph's plug-in: {_CONTEXT}; restart the notebook's kernel or "
            "the program"
        )
    if SparkContext._jvm is not None and not _is_known(SparkContext._jvm):
        raise BadInput(
            f"Spark's JVM runs already, without Barograph's jar: {_CONTEXT}; restart the notebook's kernel or the "
            "program"
        )


def has_plugin(settings: Mapping[str, str]) -> bool:
    return PLUGIN in [entry.strip() for entry in settings.get(PLUGINS, "").split(",")]


def _is_known(jvm: object) -> bool:
    """Whether the driver's JVM finds the plug-in. An unknown class is a package to Py4J."""
    from py4j.java_gateway import JavaPackage

    found = jvm.org.apache.spark.barograph.BarographPlugin  # type: ignore[attr-defined]
    return not isinstance(found, JavaPackage)


def _refuse_jars_argument(arguments: str) -> None:
    """--jars there would replace spark.jars, by which the plug-in comes."""
    if any(word == "--jars" or word.startswith("--jars=") for word in shlex.split(arguments)):
        raise BadInput(
            f"{_ARGUMENTS} has --jars, which would keep Barograph's jar out: set .config('spark.jars', ...) of the "
            "builder instead"
        )
