"""Sets up logging for processes that are Barograph's own: the command line, the controller, a cluster's owner.

A program that uses Barograph as a library sets up its own logging; nothing here is called then. Level and format reach
child processes through the environment. Log lines go to standard error; nothing is logged here.
"""

import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from barograph.config import OPTIONS, Config, default
from barograph.config.resolved import value_of
from barograph.config.sources import from_flags

LEVEL_VARIABLE, FORMAT_VARIABLE = "BAROGRAPH_LOG_LEVEL", "BAROGRAPH_LOG_FORMAT"
LEVELS, FORMATS = OPTIONS["log-level"].choices, OPTIONS["log-format"].choices
FIELDS = "fields"  # log.info(text, extra={FIELDS: {...}}): numbers that JSON lines have as fields of their own
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_VARIABLES = {"log-level": LEVEL_VARIABLE, "log-format": FORMAT_VARIABLE}
_FLAGS = {OPTIONS[name].flag_name: name for name in _VARIABLES}


@dataclass(frozen=True, slots=True)
class LogSettings:
    """level: None if neither an option nor the environment chose one, so each process has its default."""

    level: str | None = None
    format: str = default("log-format")

    def __post_init__(self) -> None:
        for what, value, known in (("level", self.level, LEVELS), ("format", self.format, FORMATS)):
            if value is not None and value not in known:
                raise ValueError(f"the log {what} must be one of {', '.join(known)}, not {value!r}")


def settings_of_environment() -> LogSettings:
    """What the process that started this one chose, or its user. Raises ValueError for a value that is unknown."""
    return LogSettings(os.environ.get(LEVEL_VARIABLE) or None, os.environ.get(FORMAT_VARIABLE) or default("log-format"))


def without_log_options(words: Sequence[str]) -> list[str]:
    """The words of a command line without --log-level and --log-format, wherever they are before --.

    What they choose is put into the environment, where this process and its children find it. Raises ValueError.
    """
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":  # what follows is of another program
            return [*found, word, *rest]
        name, equals, value = word.partition("=")
        if name not in _FLAGS:
            found.append(word)
            continue
        given = value if equals else next(rest, "")
        if not given:
            raise ValueError(f"{name} needs a value")
        (flag,) = from_flags({_FLAGS[name]: given})
        os.environ[_VARIABLES[_FLAGS[name]]] = str(value_of(flag))
    return found


def choose(config: Config) -> None:
    """What a file of options says of log lines holds where neither a flag nor the environment does."""
    for name, variable in _VARIABLES.items():
        if config.is_set(name) and not os.environ.get(variable):
            os.environ[variable] = config[name]


def set_up(default_level: str = "warning") -> None:
    """Write this process's log lines to its standard error. Called again, it replaces what it had set up."""
    settings = settings_of_environment()
    handler = _StandardError()
    handler.setFormatter(JsonLines() if settings.format == "json" else logging.Formatter(_TEXT))
    package = logging.getLogger("barograph")
    for earlier in [h for h in package.handlers if isinstance(h, _StandardError)]:
        package.removeHandler(earlier)
    package.addHandler(handler)
    package.setLevel((settings.level or default_level).upper())


class _StandardError(logging.Handler):
    """Looks up ``sys.stderr`` for each line, since a caller may have replaced it. A line is one write."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001  # as handlers of the standard library do: no log line may end the program
            self.handleError(record)


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, and the record's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class OnceOnly:
    """Warnings of a loop: one that repeats the last warning about the same thing is logged at DEBUG."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._last: dict[str, str] = {}

    def warn(self, about: str, text: str) -> None:
        level = logging.DEBUG if self._last.get(about) == text else logging.WARNING
        self._last[about] = text
        self._log.log(level, "%s", text)

    def over(self, about: str) -> None:
        """It works again, so the next warning about it is logged in any case."""
        self._last.pop(about, None)
