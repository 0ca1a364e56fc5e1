"""Barograph's settings for a session that a notebook or a program makes itself: ``barograph.configure``."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from barograph.config import resolve
from barograph.config.option import Scope
from barograph.config.written.properties import conf_folder, settings_of_words, spark_defaults
from barograph.engines.spark.cluster.java import java_home, pyspark_home
from barograph.engines.spark.conf import plugin_settings
from barograph.engines.spark.local_seats import LOCAL, own_cores, roomy_master, told
from barograph.engines.spark.security.callbacks import guard_callbacks
from barograph.model import BadInput
from barograph.submit.connect import refuse_connect
from barograph.submit.hooks import say_new
from barograph.submit.session_settings import needed
from barograph.submit.settings import DEPLOY_MODE, PLUGINS, left_out

PLUGIN = "org.apache.spark.barograph.BarographPlugin"
_CONTEXT = "barograph.configure comes before the first Spark session of a process"
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_GATEWAY = "PYSPARK_GATEWAY_PORT"

# pyspark's builder is a nested class, and any subclass of it comes back as what it is.
Builder = TypeVar("Builder", bound=SparkSession.Builder)


def configure(builder: Builder, config: Path | None = None) -> Builder:
    """The builder with Barograph's settings added, its own kept. config: of options; None: as ``resolve`` has it.

    Raises BadInput, of which a program that does not catch it shows one sentence."""
    try:
        return _configured(builder, config)
    except BadInput as error:
        _show_only_its_sentence(error)
        raise


def _configured(builder: Builder, config: Path | None) -> Builder:
    options = {str(key): str(value) for key, value in builder._options.items()}
    refuse_connect(options)
    _refuse_running()
    _refuse_jars_argument(os.environ.get(_ARGUMENTS, ""))
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    # What the builder says is passed to spark-submit as --conf, which wins over its files.
    ours = our_settings(config)
    theirs = {**_settings_from_elsewhere(ours), **options}
    _refuse_cluster_mode(theirs)
    guard_callbacks()
    master = theirs.get("spark.master") or os.environ.get("MASTER", "")
    if _leaves_seats_to_spark(theirs, os.environ):
        master = roomy_master(own_cores())
        builder.master(master)
        sys.stderr.write(f"barograph: the master is {told(own_cores())}: set .master(...) for another\n")
    missing = needed(theirs, ours, master, _say)
    for key, value in missing.items():
        builder.config(key, value)
    say_new(left_out({**theirs, **missing}, ours), _say)
    return builder


def _say(text: str) -> None:
    sys.stderr.write(f"barograph: {text}\n")


def _show_only_its_sentence(error: BadInput) -> None:
    before = sys.excepthook

    def told_hook(kind: type[BaseException], raised: BaseException, trace: TracebackType | None) -> None:
        if raised is error:
            sys.stderr.write(f"barograph.configure: {error}\n")
        else:
            before(kind, raised, trace)

    if before is sys.__excepthook__:  # barograph submit and notebooks have one of their own
        sys.excepthook = told_hook


def our_settings(config: Path | None = None) -> dict[str, str]:
    """The hooks, the jar for all executors, and the options of sessions, queries and controllers that the configuration
    sets."""
    scopes = (Scope.SESSION, Scope.QUERY, Scope.CONTROLLER)
    return {**plugin_settings(ship=True), **resolve(config).spark_settings(scopes)}


def _leaves_seats_to_spark(theirs: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether the master is local with a seat for each core. A program that spark-submit started has one already."""
    if "spark.master" in theirs:
        return theirs["spark.master"] == LOCAL
    words = environment.get(_ARGUMENTS, "")
    return _GATEWAY not in environment and "MASTER" not in environment and "master" not in words


def _refuse_running() -> None:
    present = SparkContext._active_spark_context
    if present is not None:
        if has_plugin(dict(present.getConf().getAll())):
            return
        raise BadInput(
            f"a Spark session runs already, without Barograph's plug-in: {_CONTEXT}; restart the notebook's kernel or "
            "the program"
        )
    if SparkContext._jvm is None and _GATEWAY in os.environ:
        SparkContext._ensure_initialized()  # the JVM in which spark-submit runs: it was there before this process
        if not _is_known(SparkContext._jvm):
            raise BadInput(
                "spark-submit has started Spark's JVM already, without Barograph's jar: start this script with "
                "'barograph submit', with 'python', or with 'spark-submit $(barograph conf --ship)'"
            )
    if SparkContext._jvm is not None and not _is_known(SparkContext._jvm):
        raise BadInput(
            f"Spark's JVM runs already, without Barograph's jar: {_CONTEXT}; restart the notebook's kernel or the "
            "program"
        )


def _settings_from_elsewhere(ours: Mapping[str, str]) -> dict[str, str]:
    """What holds where the builder says nothing: as the JVM has it if one runs, else as it will be given to the JVM."""
    if SparkContext._jvm is not None:
        present = dict(SparkConf().getAll())
        # It has ours already, of an earlier call or of barograph conf: they are no wish of the program.
        return {k: v for k, v in present.items() if v != ours.get(k)} if has_plugin(present) else present
    words = shlex.split(os.environ.get(_ARGUMENTS, ""))
    return settings_of_words(words, spark_defaults(conf_folder(pyspark_home())))


def _refuse_cluster_mode(settings: Mapping[str, str]) -> None:
    mode = settings.get(DEPLOY_MODE, "client")
    if mode != "client":
        raise BadInput(
            f"{DEPLOY_MODE} {mode} is not supported: the driver must be this process, so that Barograph can keep its "
            "queries; leave it out"
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
