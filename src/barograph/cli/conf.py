"""Print the Spark settings that load Barograph's plug-in into any Spark 4.3 application.

spark-submit $(barograph conf) app.py                                as arguments
barograph conf --format properties > b.conf                          for spark-submit --properties-file b.conf
barograph conf --format json                                         for programs

barograph conf --workloads                                           also the replay source of barograph run

Options of queries that barograph.toml sets, such as in-flight, are among them.
These are ordinary Spark settings; the application itself needs no change.
"""

import argparse
import json
import shlex

from barograph.config import resolve
from barograph.config.flags import add_file_flag


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("args", "properties", "json"),
        default="args",
        help="output format (default %(default)s)",
    )
    parser.add_argument(
        "--workloads", action="store_true", help="put the jar with the replay source on the class path too"
    )
    add_file_flag(parser)


def run(args: argparse.Namespace) -> int:
    from barograph.engines.spark.conf import plugin_settings, workloads_settings

    jars = workloads_settings() if args.workloads else {}
    settings = {**plugin_settings(), **jars, **resolve(args.config).spark_settings()}
    if args.format == "json":
        print(json.dumps(settings, indent=2))
    elif args.format == "properties":
        print("\n".join(f"{key} {value}" for key, value in settings.items()))
    else:
        print(" ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items()))
    return 0
