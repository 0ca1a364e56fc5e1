"""Which errors pass by themselves: those of files, connections, services and full disks. Pure: it reads errors.

An error is recognised by its types, by the names of exceptions, and by the words of the operating system and of
databases, not by what a program may write.
"""

import errno
import re
from collections.abc import Iterator, Sequence

from barograph.engines.spark.query.failures.known_outages import (
    DATABASE,
    DATABASE_WORDS,
    JAVA,
    JAVA_WRONG,
    PYTHON,
    SQL_SERVER_PASSING,
    STATES_WRONG,
    VAGUE_STATE,
    WORDS,
)
from barograph.model import BadInput


def _any(of: tuple[str, ...]) -> str:
    return f"(?:{'|'.join(of)})"


_SAID_BY_DATABASE = rf"{_any(DATABASE)}[:)][^\n]*?(?i:{_any(DATABASE_WORDS)})[^\n]*"
_THROWN = re.compile(rf"(?:^|[\s:(]){_any((*JAVA, *PYTHON, _SAID_BY_DATABASE))}(?=[:\s)]|$)")
_PASSING, _WRONG = re.compile(_any(JAVA)), re.compile(_any(JAVA_WRONG))
# The causes of an exception; in between there are lines of stacks. The line of types is written by Causes.scala.
_CAUSES = re.compile(r"\n\s*Caused by: ([^\n]*)(?:\n\tIt is a ([^\n;]*)(?:; SQLSTATE (\w+), number (-?\d+))?)?")
# Errors of a file's use that come again at each attempt. A missing file is none: a mount may be away for a moment.
_MISUSE = (
    PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError, ProcessLookupError, ChildProcessError,
)  # fmt: skip
_MISUSE_NUMBERS = (errno.EINVAL, errno.EBADF, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTEMPTY, errno.ENOTSUP)


def is_transient(text: str) -> bool:
    """text: an error with or without its stack and its causes."""
    first = " ".join(text.split("\n\tat ")[0].split("\nCaused by: ")[0].split())
    causes = _CAUSES.findall(text)
    heads = [first, *(head for head, *_ in causes)]
    if any(word in head for head in heads for word in WORDS):
        return True
    verdicts = [(_by_type(types.split(), state, number), "java.sql." in types) for _, types, state, number in causes]
    if (False, True) in verdicts:
        return False  # a database refuses the statement: the exceptions around this one are of the general class
    return any(verdict for verdict, _ in verdicts) or any(_THROWN.search(head) for head in heads)


def _by_type(types: Sequence[str], state: str, number: str) -> bool | None:
    """None where the types say nothing. types: of one exception, the nearest first; none if they are not known."""
    if state[:2] == VAGUE_STATE:
        return int(number) in SQL_SERVER_PASSING
    if state[:2] in STATES_WRONG:
        return False
    for name in types:
        if _WRONG.fullmatch(name):
            return False
        if _PASSING.fullmatch(name):
            return True
    return None


def passes(error: BaseException) -> bool:
    """Whether an exception of Python, or one that it was raised for, passes by itself."""
    return any(_passes(link, is_named) for link, is_named in _links(error))


def _passes(error: BaseException, is_named: bool) -> bool:
    if isinstance(error, OSError) and not isinstance(error, ValueError):  # both: a wrong address, an invalid use
        if isinstance(error, FileNotFoundError):
            # A program that looks whether there is a file goes on without it, and then fails for another reason.
            return is_named
        return not isinstance(error, _MISUSE) and error.errno not in _MISUSE_NUMBERS
    return is_transient(f"{type(error).__module__}.{type(error).__qualname__}: {error}")


def _links(error: BaseException) -> Iterator[tuple[BaseException, bool]]:
    """The exception and those that led to it, also those that ``from None`` hides: PySpark hides Java's so. With each,
    whether it is the exception itself or was named by ``from``."""
    seen: set[int] = set()
    ahead: list[tuple[BaseException | None, bool]] = [(error, True)]
    while ahead:
        link, is_named = ahead.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link, is_named
        if not isinstance(link, BadInput):  # what is refused is refused, whatever showed it
            ahead += [(link.__context__, False), (link.__cause__, is_named)]
