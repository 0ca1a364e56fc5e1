"""Every policy there is: what it does, the paper it is from, and its options with their defaults."""

import argparse
import json
from enum import StrEnum

from barograph.policies import DEFAULT, POLICIES, Policy, options_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("table", "json"), default="table")


def run(args: argparse.Namespace) -> int:
    if args.format == "json":
        print(json.dumps([_row(p) for p in POLICIES.values()], indent=2))
        return 0
    name, paper = (max(len(getattr(p, field)) for p in POLICIES.values()) for field in ("name", "paper"))
    for p in POLICIES.values():
        mark = "*" if p.name == DEFAULT else " "
        print(f"{mark} {p.name:<{name}}  {p.paper:<{paper}}  {p.line}")
    print("* is used unless another is named. --format json adds each policy's stages and options.")
    return 0


def _row(policy: Policy) -> dict[str, object]:
    stages = {stage: _stage_name(getattr(policy, stage)) for stage in Policy.STAGES}
    return {
        "name": policy.name,
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
