"""Checks of values when they are created. A failed check raises BadInput with one sentence that names the field."""

import difflib
import math
import re
from collections.abc import Iterable

_MOST_NESTED = 32
_NAME = re.compile(r"[^\s/=,@]+")


class BadInput(ValueError):  # noqa: N818  # the input is wrong, not the program
    """A value from outside that is not valid. The text is one sentence for the person who gave it."""


def require(ok: bool, sentence: str) -> None:
    if not ok:
        raise BadInput(sentence)


def require_name(field: str, value: object) -> None:
    require(
        isinstance(value, str) and _NAME.fullmatch(value) is not None,
        f"{field} must be a name without spaces or any of / = , @, not {value!r}",
    )


def is_index(text: str) -> bool:
    """Whether the text is a whole number that fits 64 bits; longer texts cannot be turned into a number at all."""
    return text.isdecimal() and len(text) <= 18


def require_topology_name(field: str, value: object) -> None:
    """A topology has the name of its query, which Spark does not restrict, so an address is read from its end."""
    require(isinstance(value, str) and value != "", f"{field} must be a name that is not empty, not {value!r}")


def require_whole(field: str, value: object, least: int = 0) -> None:
    require(
        isinstance(value, int) and not isinstance(value, bool) and value >= least,
        f"{field} must be a whole number of at least {least}, not {value!r}",
    )


def require_number(field: str, value: object, least: float = 0.0) -> None:
    require(
        isinstance(value, int | float) and not isinstance(value, bool) and _finite(value) and value >= least,
        f"{field} must be a number of at least {least:g}, not {value!r}",
    )


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number too large for a float
        return False


def require_positive(field: str, value: object) -> None:
    require_number(field, value)
    require(value != 0, f"{field} must be above 0")


def require_at_most(field: str, value: float, most: float) -> None:
    require(value <= most, f"{field} must be at most {_shown(most)}, not {_shown(value)}")


def require_between(field: str, value: float, least: float, most: float) -> None:
    require(least <= value <= most, f"{field} must be from {_shown(least)} to {_shown(most)}, not {_shown(value)}")


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def require_plain(where: str, value: object) -> None:
    """Parsed input must not be nested deeper than any of our formats, and its whole numbers must fit 64 bits.

    Deeper values would exhaust the stack of whatever prints or copies them, and longer numbers cannot be printed.
    """
    layer = [value]
    for _ in range(_MOST_NESTED):
        for each in layer:
            sound = not isinstance(each, int) or -(2**63) <= each < 2**63
            require(sound, f"{where}: a whole number is beyond 64 bits")
        held = [each.values() if isinstance(each, dict) else each for each in layer if isinstance(each, dict | list)]
        layer = [each for some in held for each in some]
        if not layer:
            return
    raise BadInput(f"{where}: values are nested more than {_MOST_NESTED} deep")


def require_unique(field: str, names: Iterable[object]) -> None:
    seen: set[object] = set()
    for name in names:
        require(name not in seen, f"{field} names {str(name)!r} twice")
        seen.add(name)


def or_nearest(name: str, known: Iterable[str]) -> str:
    """``: write adaptive`` for ``adaptve``; empty if no name is near."""
    near = difflib.get_close_matches(name.lower(), list(known), 1, 0.7)
    return f": write {near[0]}" if near else ""
