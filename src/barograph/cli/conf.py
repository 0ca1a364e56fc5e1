"""Print the Spark settings that load Barograph's plug-in into any Spark 4.3 application.

spark-submit $(barograph conf) app.py                                as arguments
barograph conf --format properties > b.conf                          for spark-submit --properties-file b.conf
barograph conf --format json                                         for programs

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
    add_file_flag(parser)


def run(args: argparse.Namespace) -> int:
    from barograph.engines.spark.conf import plugin_settings

    settings = {**plugin_settings(), **resolve(args.config).spark_settings()}
    if args.format == "json":
        print(json.dumps(settings, indent=2))
    elif args.format == "properties":
        print("\n".join(f"{key} {value}" for key, value in settings.items()))
    else:
        print(" ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items()))
    return 0
