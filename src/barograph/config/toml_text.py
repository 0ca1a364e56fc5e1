"""Reads TOML that others wrote: bounded in size and depth, so that it is a value or one sentence within a second.

Every file in TOML is read here.
"""

import re
import tomllib
from typing import Any

from barograph.model import BadInput
from barograph.model.checks import require, require_plain

MOST_CHARACTERS = 1_000_000
_MOST_PARTS = 32  # of a dotted name; the parser needs quadratic time for more
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_NAME = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_MOST_PARTS}}}")


class NotToml(BadInput):
    """The text cannot be parsed. said: what the parser says."""

    def __init__(self, where: str, said: str) -> None:
        super().__init__(f"{where}: {said}")
        self.said = said


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """where: begins the sentence of an error."""
    size = f"{where}: a text of {len(text):,} characters is too long: at most {MOST_CHARACTERS:,}"
    require(len(text) <= MOST_CHARACTERS, size)
    if _LONG_NAME.search(text):
        raise BadInput(f"{where}: a name has more than {_MOST_PARTS} parts with dots between them")
    try:
        found = tomllib.loads(text)
    except ValueError as error:  # an error of the parser, or a number of thousands of digits
        raise NotToml(where, str(error)) from None
    except RecursionError:
        raise NotToml(where, "values are nested too deeply to be read") from None
    require_plain(where, found)
    return found
