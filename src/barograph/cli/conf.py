"""Print the Spark settings with which any Spark 4.3 application gets Barograph's hands and eyes.

spark-submit $(barograph conf) app.py                                as arguments
barograph conf --format properties > b.conf                          for spark-submit --properties-file b.conf
barograph conf --format json                                         for programs

They are configuration points that every Spark 4.3 has; the application itself stays as it is.
"""

import argparse
import json
import shlex


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=("args", "properties", "json"), default="args", help="(default %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    from barograph.engines.spark.conf import plugin_settings

    settings = plugin_settings()
    if args.format == "json":
        print(json.dumps(settings, indent=2))
    elif args.format == "properties":
        print("\n".join(f"{key} {value}" for key, value in settings.items()))
    else:
        print(" ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items()))
    return 0
