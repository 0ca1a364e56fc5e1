"""What every value checks when it is made: one clear sentence that names the culprit, and nothing changes."""

import math
import re
from collections.abc import Iterable

_NAME = re.compile(r"[^\s/=,@]+")


class BadInput(ValueError):  # noqa: N818  # it is the giver who erred, not the program
    """Somebody gave a value that cannot be. The text is one sentence for the person who gave it."""


def require(ok: bool, sentence: str) -> None:
    if not ok:
        raise BadInput(sentence)


def require_name(field: str, value: object) -> None:
    require(
        isinstance(value, str) and _NAME.fullmatch(value) is not None,
        f"{field} must be a name without spaces or any of / = , @, not {value!r}",
    )


def require_whole(field: str, value: object, least: int = 0) -> None:
    require(
        isinstance(value, int) and not isinstance(value, bool) and value >= least,
        f"{field} must be a whole number of at least {least}, not {value!r}",
    )


def require_number(field: str, value: object, least: float = 0.0) -> None:
    require(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= least,
        f"{field} must be a number of at least {least:g}, not {value!r}",
    )


def require_positive(field: str, value: object) -> None:
    require_number(field, value)
    require(value != 0, f"{field} must be above 0")


def require_unique(field: str, names: Iterable[object]) -> None:
    seen: set[object] = set()
    for name in names:
        require(name not in seen, f"{field} names {str(name)!r} twice")
        seen.add(name)
