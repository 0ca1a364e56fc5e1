"""Priorities on disk: one JSON file, replaced whole, so that a restart finds the old state or the new one."""

import json
import os
from pathlib import Path

from barograph.model import BadInput
from barograph.model.codec import from_json, to_json
from barograph.priority.machine import State


def save(path: Path, state: State) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(to_json(state), file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load(path: Path) -> State:
    """What was saved; an empty state where nothing was. A file that makes no sense is refused, not overwritten."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return State()
    except OSError as error:
        raise BadInput(f"the priorities {str(path)!r} cannot be read: {error.strerror}") from None
    try:
        return from_json(State, json.loads(text))
    except ValueError as error:
        raise BadInput(f"the priorities {str(path)!r} make no sense: {error}") from None
