"""Priorities on disk: one JSON file, replaced whole, so that a restart finds the old state or the new one."""

import json
import os
from pathlib import Path

from barograph.model import BadInput
from barograph.model.codec import from_json, to_json
from barograph.priority.machine import PriorityState


def save(path: Path, state: PriorityState) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(to_json(state), file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


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
