"""Options that several commands have, as they are written on the command line."""

from barograph.model.checks import require


def parse_seed(text: str) -> int:
    require(text.isdecimal(), f"--seed must be a whole number of at least 0, not {text!r}")
    return int(text)
