"""``barograph``: finds the command, runs it, and turns bad input into one clear line and exit code 2.

A command is a module of this package with ``HELP`` (one line), ``configure(parser)`` and ``run(args) -> exit code``.
Modules are imported only when needed, so that ``barograph allot`` never waits for Spark.
"""

import argparse
import importlib
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from barograph import __version__
from barograph.model import BadInput

# name -> one line of help; the module is barograph.cli.<name>
COMMANDS: dict[str, str] = {
    "run": "run a workload on Spark under a load and judge it exactly",
    "status": "what runs: topologies, instances by node, rates, latency, backlog",
    "conf": "the settings that give any Spark application Barograph",
    "doctor": "whether this machine has what Barograph needs",
    "cluster": "start, show and end a small Spark cluster on this machine",
    "allot": "how SPS or DPS shares out too few nodes",
    "plan": "where a policy would place a recorded cluster",
    "sim": "a scenario under a policy, simulated",
    "history": "what was seen, decided and done, cycle by cycle, or any question in SQL",
    "replay": "another policy over a recorded history, simulated",
    "priority": "list, set and trigger the priorities of running topologies",
    "policies": "every policy, what it does and whose it is",
}


class _Parser(argparse.ArgumentParser):
    """What the command line itself gets wrong is one line too; --help has the rest."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _with_negative_lists(sys.argv[1:] if argv is None else argv)
    parser = _Parser(
        prog="barograph",
        description="An adaptive online scheduler for stream topologies on Spark.",
        epilog="barograph COMMAND --help teaches each command.",
    )
    parser.add_argument("--version", action="version", version=f"barograph {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help_line in COMMANDS.items():
        sub = commands.add_parser(name, help=help_line, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name in arguments[:1]:
            module = importlib.import_module(f"barograph.cli.{name}")
            sub.description = module.__doc__
            module.configure(sub)
            sub.set_defaults(run=module.run)
    args = parser.parse_args(arguments)
    try:
        code: int = args.run(args)
    except BadInput as error:
        print(f"barograph {args.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


def _with_negative_lists(words: Sequence[str]) -> list[str]:
    """``--desired -4,4`` as ``--desired=-4,4``: argparse would take -4,4 for an option, and not say what is wrong."""
    found: list[str] = []
    for word in words:
        if found and re.fullmatch(r"--[a-z-]+", found[-1]) and re.match(r"-[0-9]", word):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


if __name__ == "__main__":
    sys.exit(main())
