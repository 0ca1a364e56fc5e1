"""Options that several commands have, as they are written on the command line."""

import argparse

from barograph.model.checks import require


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--seed", default="0", metavar="N", help=f"seed of {what} (default %(default)s)")


def parse_seed(text: str) -> int:
    require(text.isdecimal(), f"--seed must be a whole number of at least 0, not {text!r}")
    return int(text)
