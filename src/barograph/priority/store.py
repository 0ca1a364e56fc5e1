"""Priorities on disk: one JSON file, replaced whole, so that a restart finds the old state or the new one.

Each driver has a file of its own: drivers whose applications have the same name must not overwrite each other's.
"""

import contextlib
import fcntl
import json
import os
from itertools import count
from pathlib import Path
from typing import IO

from barograph.model import BadInput
from barograph.model.codec import from_json, to_json
from barograph.priority.machine import PriorityState


def claim(folder: Path, name: str) -> tuple[Path, IO[bytes]]:
    """The first file for this name that no other driver uses, and its lock, which is held until it is closed.

    A driver that ends leaves its file to the next one of its name.
    """
    for number in count(1):
        stem = f"priorities-{name}" if number == 1 else f"priorities-{name}-{number}"
        lock = os.fdopen(os.open(folder / f".{stem}.lock", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        return folder / f"{stem}.json", lock
    raise AssertionError("there is always a next number")


def save(path: Path, state: PriorityState) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(to_json(state), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def load(path: Path) -> PriorityState:
    """What was saved; an empty state where nothing was. A file that is not valid is refused, not overwritten."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return PriorityState()
    except OSError as error:
        raise BadInput(f"the priorities {str(path)!r} cannot be read: {error.strerror}") from None
    try:
        return from_json(PriorityState, json.loads(text))
    except ValueError as error:
        raise BadInput(f"the priorities {str(path)!r} are not valid: {error}") from None
