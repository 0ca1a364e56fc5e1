"""Notes the calls by which a program describes a DataStreamWriter, so that an equal writer can be made again.

A program may go on with the same writer, for its next query, while the first one runs: a restart must not see that.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.readwriter import DataStreamWriter

_FLUENT = (
    "outputMode", "format", "option", "options", "partitionBy", "clusterBy", "queryName", "trigger", "foreach",
    "foreachBatch",
)  # fmt: skip
_NOTES = "_barograph_calls"


@dataclass(frozen=True, slots=True)
class WriterCall:
    name: str
    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriterNotes:
    """The calls that made a writer what it is, in their order."""

    calls: tuple[WriterCall, ...]

    @property
    def is_real_time(self) -> bool:
        triggers = [call.named for call in self.calls if call.name == "trigger"]
        return bool(triggers) and triggers[-1].get("realTime") is not None

    @property
    def query_name(self) -> str | None:
        """The last one that was given."""
        names = [_first(call, "queryName") for call in self.calls if call.name == "queryName"]
        return None if not names or names[-1] is None else str(names[-1])

    def option(self, name: str) -> str | None:
        """Names of options are the same in upper and lower case."""
        found = None
        for call in self.calls:
            if call.name == "option":
                key, value = (*call.positional, *call.named.values())[:2]
                found = value if str(key).lower() == name.lower() else found
            elif call.name == "options":
                found = next((v for k, v in call.named.items() if k.lower() == name.lower()), found)
        return None if found is None else str(found)


def note_calls() -> None:
    """From now on every writer of this process keeps its notes."""
    for name in _FLUENT:
        setattr(DataStreamWriter, name, _noting(name, getattr(DataStreamWriter, name)))


def notes_of(writer: DataStreamWriter) -> WriterNotes:
    return WriterNotes(tuple(writer.__dict__.get(_NOTES, ())))


def remade(writer: DataStreamWriter, notes: WriterNotes) -> DataStreamWriter:
    """A new writer for the same frame, by the same calls."""
    again = DataStreamWriter(writer._df)
    for call in notes.calls:
        getattr(again, call.name)(*call.positional, **call.named)
    return again


def _noting(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: DataStreamWriter, *positional: Any, **named: Any) -> Any:
        result = original(self, *positional, **named)
        self.__dict__.setdefault(_NOTES, []).append(WriterCall(name, positional, named))
        return result

    return call


def _first(call: WriterCall, name: str) -> Any:
    return call.positional[0] if call.positional else call.named.get(name)
