"""List every policy: what it does, the paper it is from, the package that brings it, its options with their defaults.

Policies of other installed packages are listed too (docs/add-a-policy.md). One that cannot be used is named on standard
error, with the reason.
"""

import argparse
import json
import sys
from enum import StrEnum

from barograph.cli.support.tables import table
from barograph.policy.definition import Policy, options_of
from barograph.policy.registry import DEFAULT, listing


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("table", "json"), default="table", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    found = listing()
    for problem in found.problems:
        print(problem, file=sys.stderr)
    if args.format == "json":
        print(json.dumps([_row(policy, package) for policy, package in found.policies], indent=2))
        return 0
    marked = [(policy, package, "* " if policy.name == DEFAULT else "  ") for policy, package in found.policies]
    print("\n".join(table([[mark + p.name, package, p.paper, p.line] for p, package, mark in marked])))
    print("* is the default. --format json adds the stages and options of each policy.")
    return 0


def _row(policy: Policy, package: str) -> dict[str, object]:
    stages = {stage: _stage_name(getattr(policy, stage)) for stage in Policy.STAGES}
    return {
        "name": policy.name,
        "package": package,
        "paper": policy.paper,
        "line": policy.line,
        "default": policy.name == DEFAULT,
        "stages": stages,
        "options": {name: _plain(value) for name, value in options_of(policy).items()},
    }


def _stage_name(stage: object) -> str:
    return stage.__name__ if hasattr(stage, "__name__") else type(stage).__name__


def _plain(value: object) -> object:
    if isinstance(value, StrEnum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
