"""Print the Spark settings that load Barograph's plug-in into any Spark 4.3 application.

barograph conf --submit app.py ARGUMENTS                             run an application with them
spark-submit $(barograph conf) app.py                                as arguments
barograph conf --format properties > b.conf                          for spark-submit --properties-file b.conf
barograph conf --format json                                         for programs
barograph conf --workloads                                           also the replay source of barograph run

--submit calls the spark-submit of the installed pyspark with the Python and the Java that Barograph itself uses, so the
environment need not be activated. What follows is passed on: options of spark-submit, the application, its arguments.
A spark-submit of your own finds Python by its PATH: activate the environment, or set PYSPARK_PYTHON.
Options of queries that barograph.toml sets, such as in-flight, are among them.
These are ordinary Spark settings; the application itself needs no change.
"""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence

from barograph.config import resolve
from barograph.config.flags import add_file_flag
from barograph.model.checks import require


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("args", "properties", "json"),
        default="args",
        help="output format (default %(default)s)",
    )
    parser.add_argument(
        "--submit",
        nargs=argparse.REMAINDER,
        metavar="WORD",
        help="run spark-submit with the settings and these words instead of printing them; must come last",
    )
    parser.add_argument(
        "--workloads", action="store_true", help="put the jar with the replay source on the class path too"
    )
    add_file_flag(parser)


def run(args: argparse.Namespace) -> int:
    from barograph.engines.spark.conf import plugin_settings, workloads_settings

    jars = workloads_settings() if args.workloads else {}
    settings = {**plugin_settings(), **jars, **resolve(args.config).spark_settings()}
    if args.submit is not None:
        require(bool(args.submit), "--submit needs an application: write --submit app.py")
        return _submit(settings, args.submit)
    if args.format == "json":
        print(json.dumps(settings, indent=2))
    elif args.format == "properties":
        print("\n".join(f"{key} {value}" for key, value in settings.items()))
    else:
        print(" ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items()))
    return 0


def _submit(settings: Mapping[str, str], words: Sequence[str]) -> int:
    from barograph.engines.spark.cluster.java import java_home, pyspark_home
    from barograph.engines.spark.cluster.processes import python_environment

    program = str(pyspark_home() / "bin" / "spark-submit")
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    environment = {
        **python_environment(), "SPARK_HOME": str(pyspark_home()), "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    os.execve(program, [program, *options, *words], environment)
