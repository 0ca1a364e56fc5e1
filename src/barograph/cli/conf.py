"""Print the Spark settings that load Barograph's plug-in into any Spark 4.3 application.

barograph conf --submit app.py ARGUMENTS                             run an application with them
spark-submit $(barograph conf --ship) app.py                         as arguments
barograph conf --format properties > b.conf                          for spark-submit --properties-file b.conf
barograph conf --format json                                         for programs
barograph conf --workloads                                           also the replay source of barograph run

--submit calls the spark-submit of the installed pyspark with the Python and the Java that Barograph itself uses, so the
environment need not be activated. What follows is passed on: options of spark-submit, the application, its arguments.
Without a master, and for local[*], Spark would have a seat for each core, and each instance takes one: there are more.
A spark-submit of your own finds Python by its PATH: activate the environment, or set PYSPARK_PYTHON.
Options of queries that barograph.toml sets, such as in-flight, are among them.
These are ordinary Spark settings; the application itself needs no change.

Without --ship, executors load the jar from the path that it has on this machine: right for an embedded cluster.
With --ship the driver sends it to them, wherever they run. A list of your own, such as --jars, --conf spark.plugins or
spark.sql.extensions, replaces ours here; barograph submit and barograph.configure keep both.
"""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from barograph.config import resolve
from barograph.config.flags import add_file_flag
from barograph.engines.spark.local_seats import LOCAL, own_cores, roomy_master, told
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
        "--ship", action="store_true", help="executors get the jar from the driver, not from their own disk"
    )
    parser.add_argument("--workloads", action="store_true", help="add the jar with the replay source too")
    add_file_flag(parser)


def run(args: argparse.Namespace) -> int:
    from barograph.engines.spark.conf import plugin_settings, without_local_files, workloads_settings

    jars = workloads_settings(args.ship) if args.workloads else {}
    hooks = plugin_settings(args.ship)
    if args.ship or _names_yarn(args.submit or ()):
        hooks = without_local_files(hooks)
    settings = {**hooks, **jars, **resolve(args.config).spark_settings()}
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


def with_seats(words: Sequence[str], cores: int, configured: bool) -> tuple[list[str], str]:
    """The words with a master that has more seats than cores, if they leave the number to Spark; and what to say of it.

    configured: settings that are not among the words may name a master."""
    found = list(words)
    given = [at + 1 for at, word in enumerate(words) if word == "--master" and at + 1 < len(words)]
    line = f"{told(cores)}: write --master"
    if given:
        if found[given[-1]] != LOCAL:
            return found, ""
        found[given[-1]] = roomy_master(cores)
        return found, f"{LOCAL} is taken as {line} local[N] for another number"
    if configured or any(word.startswith(("--master=", "spark.master=", "--properties-file")) for word in words):
        return found, ""
    return ["--master", roomy_master(cores), *found], f"without a master it is {line} to choose"


def _names_yarn(words: Sequence[str]) -> bool:
    """Whether the master is named there, and is YARN."""
    pairs = pairwise(words)
    return any(
        (word == "--master" and then.startswith("yarn"))
        or (word == "--conf" and then.replace(" ", "").startswith("spark.master=yarn"))
        for word, then in pairs
    ) or any(word.startswith(("--master=yarn", "--conf=spark.master=yarn")) for word in words)


def _configured(home: Path) -> bool:
    folder = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf")
    return "MASTER" in os.environ or (folder / "spark-defaults.conf").is_file()


def _submit(settings: Mapping[str, str], words: Sequence[str]) -> int:
    from barograph.engines.spark.cluster.java import java_home, pyspark_home
    from barograph.engines.spark.cluster.processes import python_environment

    program = str(pyspark_home() / "bin" / "spark-submit")
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    words, line = with_seats(words, own_cores(), _configured(pyspark_home()))
    if line:
        print(f"barograph conf: {line}", file=sys.stderr, flush=True)
    environment = {
        **python_environment(), "SPARK_HOME": str(pyspark_home()), "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    os.execve(program, [program, *options, *words], environment)
