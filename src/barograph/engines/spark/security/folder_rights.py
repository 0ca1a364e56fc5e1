"""What other users can do with a folder, by the rights of it, of what is above it and of what is in it. Reads only."""

import contextlib
import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from barograph.engines.spark.health import Finding

_SHOWN = 5  # of a list that can be long


def folder_finding(name: str, folder: Path) -> Finding:
    """Whether other users can read or write anything in it. OSError where it is not there."""
    real = folder.resolve(strict=True)
    way = (*reversed(real.parents), real)
    shut = next((place for place in way if _is_shut(place)), None)
    # Above what is shut others can still put another folder in its place.
    passed = way if shut is None else way[: way.index(shut) + 1]
    replaced = next((place for place in passed[1:] if _can_be_replaced(place)), None)
    if replaced is not None:
        advice = f"move it to a folder in which no other user can write, or chmod go-w {replaced.parent}"
        return Finding(name, False, f"{folder}: other users can put another {replaced} in its place", advice)
    if shut == real:
        return Finding(name, True, f"{folder}: only its owner can enter")
    if shut is not None:
        return Finding(name, True, f"{folder}: only the owner of {shut} can enter")
    found = list(islice(_open_in(real), _SHOWN + 1))
    listed = ", ".join(found[:_SHOWN]) + (" and more" if len(found) > _SHOWN else "")
    text = f"{folder}: other users can enter" + (f" and use {listed}" if found else "")
    return Finding(name, not found, text, f"chmod 700 {folder}")


def place_finding(name: str, place: str) -> Finding:
    """As ``folder_finding``, of a path or a URL."""
    parts = urlsplit(place)
    if parts.scheme not in ("", "file"):
        return Finding(name, True, f"{place}: not on this machine, so its rights are not known here", essential=False)
    try:
        return folder_finding(name, Path(unquote(parts.path) if parts.scheme else place))
    except OSError as error:
        return Finding(name, True, f"{place}: {error.strerror}", essential=False)


def _is_shut(place: Path) -> bool:
    """Whether no other user gets through it. Its owner does, and root does anyway."""
    seen = place.stat()
    return seen.st_uid in (0, os.getuid()) and not seen.st_mode & 0o011


def _can_be_replaced(place: Path) -> bool:
    """Whether another user may rename or remove it: whoever may write to the folder above it, unless that is sticky."""
    above = place.parent.stat()
    if above.st_uid not in (0, os.getuid()):
        return True
    if not above.st_mode & 0o022:
        return False
    return not above.st_mode & stat.S_ISVTX or place.lstat().st_uid not in (0, os.getuid())


def _open_in(folder: Path) -> Iterator[str]:
    """What is in it that others can reach and use, by name."""
    for above, folders, files in os.walk(folder):
        folders.sort()
        for entry in sorted([*folders, *files]):
            place = Path(above) / entry
            with contextlib.suppress(OSError):  # it has gone meanwhile
                mode = place.lstat().st_mode
                if mode & 0o077 and not stat.S_ISLNK(mode):
                    yield str(place.relative_to(folder))
        folders[:] = [entry for entry in folders if _is_entered(Path(above) / entry)]


def _is_entered(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return not _is_shut(folder)
    return False
