"""``barograph``: finds the command, runs it, and turns bad input into one clear line and exit code 2.

A command is a module of this package with ``configure(parser)`` and ``run(args) -> exit code``; its docstring is its
help. Modules are imported only when needed, so that ``barograph allot`` never waits for Spark.
"""

import argparse
import errno
import importlib
import os
import re
import select
import signal
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn, TextIO

from barograph import __version__, logs
from barograph.cli.support.spark_words import marked
from barograph.config import resolve
from barograph.config.flags import add_option_flags
from barograph.config.option import EVERY
from barograph.config.sources import handed_on
from barograph.model import BadInput

# name -> one line of help; the module is barograph.cli.<name>, or in a folder of that package
COMMANDS: dict[str, str] = {
    "submit": "run a PySpark script of your own, unchanged, with its queries kept and steered",
    "run": "run a workload on Spark under a load and check its result exactly",
    "status": "show what runs: topologies, instances by node, rates, latency, backlog",
    "steer": "attach a controller to a running driver, to act or to advise",
    "freeze": "hold a driver as it is: no plan is applied",
    "thaw": "let a frozen driver be changed again",
    "decisions": "show what a driver's controller decided, why, and what came of it",
    "config": "show or check the options in force, and print the reference of all options",
    "keep": "start a program, such as a driver, again whenever it dies",
    "conf": "print the settings that load Barograph into any Spark application",
    "doctor": "check whether this machine has what Barograph needs",
    "cluster": "start, show and stop a small Spark cluster on this machine",
    "allot": "compute how SPS or DPS shares out too few nodes",
    "plan": "compute where a policy would place a recorded cluster",
    "sim": "simulate a scenario under a policy",
    "history": "list what was observed, decided and done, or query it with SQL",
    "replay": "simulate another policy over a recorded history",
    "priority": "list, set and trigger the priorities of running topologies",
    "policies": "list the policies, what each does and which paper it is from",
}
FOLDERS = {**dict.fromkeys(("steer", "freeze", "thaw", "decisions"), "steering."), "submit": "submission."}

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class _Parser(argparse.ArgumentParser):
    """Wrong arguments give one line, as all bad input does, instead of the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    try:
        try:
            return _run(argv)
        finally:
            if sys.stdout is not None:  # a shell may start it without one: >&-
                sys.stdout.flush()  # here, where an error can still be handled
    except BrokenPipeError:
        if not _output_is_closed():  # another pipe or socket broke
            raise
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        _discard(sys.stdout)
        print(f"barograph: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1


def _output_is_closed() -> bool:
    """Whether the reader of our output has gone, as ``head`` does. The rest of the output is then discarded."""
    closed = False
    for stream in (sys.stdout, sys.stderr):
        try:
            number = stream.fileno()
        except (OSError, AttributeError):  # not a file: replaced by a caller, or closed
            continue
        # Polled, because a second flush succeeds where the failed write has dropped its text.
        poll = select.poll()
        poll.register(number, select.POLLOUT)
        if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
            _discard(stream)
            closed = True
    return closed


def _discard(stream: TextIO) -> None:
    """What is left in its buffer, and all that is still written, goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _run(argv: Sequence[str] | None) -> int:
    try:
        words = list(sys.argv[1:] if argv is None else argv)
        if words[:1] == ["submit"]:  # what follows the script is the script's own
            words = ["submit", *marked(words[1:])]
        arguments = _with_negative_lists(logs.without_log_options(words))
        logs.set_up()
    except ValueError as error:
        print(f"barograph: {error}", file=sys.stderr)
        return 2
    parser = _Parser(
        prog="barograph",
        description="An adaptive online scheduler for stream topologies on Spark.",
        epilog="barograph COMMAND --help explains each command.",
    )
    parser.add_argument("--version", action="version", version=f"barograph {__version__}")
    add_log_options(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help_line in COMMANDS.items():
        sub = commands.add_parser(name, help=help_line, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name in arguments[:1]:
            module = module_of(name)
            sub.description = module.__doc__
            module.configure(sub)
            add_log_options(sub)
            sub.set_defaults(run=module.run)
    args = parser.parse_args(arguments)
    try:
        with handed_on(getattr(args, "config", None)):
            if "config" in args:  # the command reads a file of options
                logs.choose(resolve(command=args.command))
                logs.set_up()
            code: int = args.run(args)
    except BadInput as error:
        print(f"barograph {args.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


def module_of(command: str) -> ModuleType:
    return importlib.import_module(f"barograph.cli.{FOLDERS.get(command, '')}{command}")


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Only for the help: they are taken out of the arguments before, because they may stand anywhere."""
    group = parser.add_argument_group("logging, before or after the command")
    add_option_flags(group, EVERY)


def _with_negative_lists(words: Sequence[str]) -> list[str]:
    """``--desired -4,4`` as ``--desired=-4,4``: argparse would take -4,4 for an option and give an unclear error."""
    found: list[str] = []
    for word in words:
        if "--" not in found and found and re.fullmatch(r"--[a-z-]+", found[-1]) and re.match(r"-[0-9]", word):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


if __name__ == "__main__":
    sys.exit(main())
