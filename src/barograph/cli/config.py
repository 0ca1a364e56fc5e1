"""Show the options in force, check a file of options, or print the reference of all options.

barograph config show                           each option, its value and where it came from
barograph config show --config FILE             with another file than barograph.toml of the working directory
barograph config show --conf spark.barograph.inFlightMs=100     with keys of a Spark application
barograph config check FILE                     exit code 0 if every name and value is right; 2 and one sentence if not
barograph config reference                      all options in Markdown: default, range, meaning, flag and key

The order is: defaults, the file, Spark's keys, flags. The later one wins.
"""

import argparse
import json
from pathlib import Path

from barograph.cli.support.tables import table
from barograph.config import OPTIONS, Config, resolve
from barograph.config.flags import add_conf_flag, add_file_flag
from barograph.config.reference import reference
from barograph.config.sources import from_file, parse_conf
from barograph.config.values import shown
from barograph.policy.configured import require_policy


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="show|check|reference", required=True)
    show = actions.add_parser("show", help="show each option, its value and where it came from")
    add_file_flag(show)
    add_conf_flag(show)
    show.add_argument("--format", choices=("table", "json"), default="table", help="(default %(default)s)")
    check = actions.add_parser("check", help="check a file of options")
    check.add_argument("file", metavar="FILE", type=Path, help="the file, as barograph.toml")
    actions.add_parser("reference", help="print all options in Markdown")


def run(args: argparse.Namespace) -> int:
    if args.action == "reference":
        print(reference(), end="")
    elif args.action == "check":
        require_policy(resolve(args.file))
        count = len(from_file(args.file))
        print(f"{args.file}: {count} {'option is' if count == 1 else 'options are'} right")
    else:
        config = resolve(args.config, parse_conf(args.conf))
        require_policy(config)
        print(json.dumps(_rows(config), indent=2) if args.format == "json" else _table(config))
    return 0


def _rows(config: Config) -> list[dict[str, object]]:
    """value: as it is inside, durations in seconds. shown: as it is written."""
    return [
        {"name": name, "value": config[name], "shown": shown(OPTIONS[name], config[name]), "origin": config.place(name)}
        for name in OPTIONS
    ]


def _table(config: Config) -> str:
    rows = [[name, _value(config, name), config.place(name)] for name in OPTIONS]
    return "\n".join(table([["option", "value", "from"], *rows]))


def _value(config: Config, name: str) -> str:
    option, value = OPTIONS[name], config[name]
    if value is None and option.unset:
        return f"({option.unset})"
    return shown(option, value) or "(none)"
