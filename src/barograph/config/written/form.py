"""What the text of an option must look like, and which right text is near a wrong one. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """what: as in ``must be a load``. check: raises BadInput for a text that is wrong; the text stays as it is written.

    near: texts that may be meant by a wrong one, the nearest first; they need not be right.
    """

    what: str
    check: Callable[[str], object]
    near: Callable[[str], Iterable[str]] = lambda _: ()
