"""Reads one JSON object field by field: what is missing, unknown or of the wrong kind is named in one sentence."""

import json
from collections.abc import Mapping
from typing import cast

from barograph.model.checks import BadInput, require, require_name, require_number, require_plain, require_whole
from barograph.recordings.notes import Notes


def parse(text: str, where: str) -> object:
    """JSON, but a key given twice is an error instead of a silent loss."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            require(key not in found, f"{where}: the key {key!r} is given twice in one object")
            found[key] = value
        return found

    try:
        found: object = json.loads(text, object_pairs_hook=unique)
    except BadInput:
        raise
    except ValueError as error:  # an error of the parser, or a number of thousands of digits
        raise BadInput(f"{where} is not JSON: {error}") from None
    except RecursionError:
        raise BadInput(f"{where} is nested too deeply to be read") from None
    require_plain(where, found)
    return found


class ObjectFields:
    """An object of the file. ``here`` names it in every error. An unknown key is refused, or noted if lenient."""

    def __init__(self, value: object, here: str, known: str, notes: Notes) -> None:
        require(isinstance(value, dict), f"{here} must be an object, not {value!r}")
        self.values = cast(Mapping[str, object], value)
        self.here = here
        names = known.split()
        for key in self.values:
            if key not in names and notes.lenient:
                notes.ignore(key, here)
                continue
            require(key in names, f"{here} has the unknown key {key!r}; it may have {', '.join(names)}")

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def rows(self, key: str) -> list[object]:
        value = self.values.get(key, [])
        require(isinstance(value, list), f"{self.here}: {key} must be a list, not {value!r}")
        return cast(list[object], value)

    def name(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        require(value is not None, f"{self.here} has no {key}")
        if value != "" or default is None:
            require_name(f"{self.here}: {key}", value)
        return cast(str, value)

    def text(self, key: str) -> str:
        value = self.values.get(key)
        require(isinstance(value, str), f"{self.here}: {key} must be a text, not {value!r}")
        return cast(str, value)

    def whole(self, key: str, least: int = 0, default: int | None = None) -> int:
        value = self.values.get(key, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        require_whole(f"{self.here}: {key}", value, least)
        return cast(int, value)

    def number(self, key: str, default: float | None = None) -> float:
        value = self.values.get(key, default)
        require_number(f"{self.here}: {key}", value)
        return float(cast(float, value))

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.values.get(key, default)
        require(isinstance(value, bool), f"{self.here}: {key} must be true or false, not {value!r}")
        return cast(bool, value)
