"""Fetch pinned jars into a folder, once. No jar appears there whose checksum is not the pinned one."""

import fcntl
import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from barograph.maven.pins import Jar
from barograph.maven.tools import FetchFailed, Ivy, Tool, find_maven


def fetch(jars: Sequence[Jar], folder: Path, ivy: Callable[[], Ivy]) -> tuple[Path, ...]:
    """The jars as files in the folder, in the order given. FetchFailed where one cannot be fetched or differs.

    ivy: called only where a jar is missing and ``mvn`` is not on the PATH. Any number of processes may fetch at once:
    one of them does the work, and a jar gets its name only when it is complete and its checksum is right.
    """
    if not _missing(jars, folder):
        return _paths(jars, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            if missing := _missing(jars, folder):  # another process may have fetched them while this one waited
                for jar in missing:  # a file that is there is not the pinned one
                    (folder / jar.file_name).unlink(missing_ok=True)
                _fetch(find_maven() or ivy(), missing, folder)
    except OSError as error:
        raise FetchFailed(f"jars cannot be kept in {folder}: {error.strerror}") from None
    return _paths(jars, folder)


def _paths(jars: Sequence[Jar], folder: Path) -> tuple[Path, ...]:
    return tuple(folder / jar.file_name for jar in jars)


def _fetch(tool: Tool, jars: Sequence[Jar], folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder, ignore_cleanup_errors=True) as name:
        inside = Path(name)
        tool.fetch(jars, inside)
        for jar in jars:
            got = inside / jar.file_name
            if not got.is_file():
                raise FetchFailed(f"{type(tool).__name__} ended without an error but did not fetch {jar}: fetch again")
            if (found := _sha256(got)) != jar.sha256:
                got.unlink()
                raise FetchFailed(
                    f"{jar} has the SHA-256 {found} instead of the pinned {jar.sha256} and was deleted: clear it from "
                    "the local Maven repository and find out why the repository's file differs"
                )
        for jar in jars:
            (inside / jar.file_name).replace(folder / jar.file_name)


def _missing(jars: Sequence[Jar], folder: Path) -> list[Jar]:
    """Jars that are not there, or not as pinned."""
    return [jar for jar in jars if not _is(jar, folder / jar.file_name)]


def _is(jar: Jar, path: Path) -> bool:
    try:
        return _sha256(path) == jar.sha256
    except (FileNotFoundError, NotADirectoryError):
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While no other process fetches into the folder. The lock ends with the process that holds it."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
