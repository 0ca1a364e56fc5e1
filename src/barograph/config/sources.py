"""Where values come from besides the defaults: the file, Spark's keys, and flags or arguments.

Each source gives what was written, with the place, and refuses names that do not exist. Values are not read here.
"""

import contextlib
import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barograph.config.declared import OPTIONS
from barograph.config.option import SPARK_PREFIX, Option
from barograph.config.toml_text import NotToml, parse_toml
from barograph.model.checks import BadInput

FILE_NAME = "barograph.toml"
FILE_VARIABLE = "BAROGRAPH_CONFIG"
_HEADER = re.compile(r"\s*\[([^\[\]]+)\]")
_ENTRY = re.compile(r"\s*([\w\"'.\- ]+?)\s*=")


@dataclass(frozen=True, slots=True)
class SetOption:
    """raw: as it was written. place: for people, ``barograph.toml:3`` or a flag or key. text: it is always a text.

    form: how the option is written there, with {} for the value.
    """

    option: Option
    raw: object
    place: str
    text: bool
    form: str


def from_file(path: Path | None) -> list[SetOption]:
    """Of the file, or else of the one that ``handed_on`` named, or else of barograph.toml in the working directory if
    there is one."""
    if path is None and (named := os.environ.get(FILE_VARIABLE)):
        path = Path(named)
    if path is None and not Path(FILE_NAME).is_file():
        return []
    path = Path(FILE_NAME) if path is None else path
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}; name a file like {FILE_NAME}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8 text: write it in the format of {FILE_NAME}") from None
    try:
        parsed = parse_toml(text, str(path))
    except NotToml as error:
        raise BadInput(_not_toml(path, text, error.said)) from None
    lines = _lines(text)
    found = []
    for name, value in _flat(parsed):
        place = f"{path}:{_line_of(lines, name)}"
        if name not in OPTIONS:
            raise BadInput(f"{place}: there is no option {name!r}: {_instead(name, OPTIONS)}")
        found.append(SetOption(OPTIONS[name], value, f"{place}: {name}", False, f"{name} = {{}}"))
    return found


@contextlib.contextmanager
def handed_on(path: Path | None) -> Iterator[None]:
    """Meanwhile the file stands in for barograph.toml wherever options are read, in processes that are started too."""
    if path is None:
        yield
        return
    before = os.environ.get(FILE_VARIABLE)
    os.environ[FILE_VARIABLE] = str(path.absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ[FILE_VARIABLE]
        else:
            os.environ[FILE_VARIABLE] = before


def from_spark(conf: Mapping[str, str]) -> list[SetOption]:
    """Of Spark's configuration; keys that do not begin with spark.barograph. are not ours."""
    known = {o.key_name: o for o in OPTIONS.values() if o.key_name}
    found = []
    for key, raw in conf.items():
        if not key.startswith(SPARK_PREFIX):
            continue
        if key not in known:
            raise BadInput(f"there is no key {key!r}: {_instead(key, known)}")
        # As in Spark's own keys of this kind, the name has the unit.
        value = f"{raw}ms" if key.endswith("Ms") and re.fullmatch(r"-?\d+(\.\d+)?", raw) else raw
        found.append(SetOption(known[key], value, key, True, f"{key}={{}}"))
    return found


def from_flags(values: Mapping[str, object]) -> list[SetOption]:
    """values: texts by the option's name; None where the flag was not given."""
    return [
        SetOption(OPTIONS[name], raw, OPTIONS[name].flag_name, True, f"{OPTIONS[name].flag_name} {{}}")
        for name, raw in values.items()
        if raw is not None
    ]


def from_arguments(values: Mapping[str, object]) -> list[SetOption]:
    """Of a call in Python, by the option's name; None where the argument was not given."""
    return [
        SetOption(OPTIONS[name], raw, OPTIONS[name].field, False, f"{OPTIONS[name].field}={{}}")
        for name, raw in values.items()
        if raw is not None
    ]


def from_mapping(values: Mapping[str, object]) -> list[SetOption]:
    """Of a mapping in Python, by the option's name: texts and numbers as in the file."""
    return [
        SetOption(OPTIONS[name], raw, f"options[{name!r}]", False, f"{name!r}: {{}}") for name, raw in values.items()
    ]


def parse_conf(texts: Iterable[str]) -> dict[str, str]:
    """``spark.barograph.inFlightMs=100`` as a key and a value."""
    found = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not key or not sign:
            raise BadInput(f"--conf {text!r} is not KEY=VALUE: write for example --conf spark.barograph.cycle=2s")
        if not key.startswith(SPARK_PREFIX):
            raise BadInput(f"--conf {text!r} is not a key of Barograph: write a key that begins with {SPARK_PREFIX}")
        found[key] = value
    return found


def _instead(name: str, known: Iterable[str]) -> str:
    """What to write for a name that does not exist: without the unit, in the right group, or spelt right."""
    names = list(known)
    plain = re.sub(r"-(s|mb|pct)$", "", name.replace("_", "-"))
    own = plain.rpartition(".")[2]
    last = {n: n.rpartition(".")[2] for n in names}
    candidates = (
        difflib.get_close_matches(plain, [n for n in names if last[n] == own], 1, 0.0),
        difflib.get_close_matches(plain, names, 1, 0.7),
        [n for n in names if last[n] in difflib.get_close_matches(own, last.values(), 1, 0.75)],
        difflib.get_close_matches(plain, names, 1, 0.5),
    )
    near = next((found[0] for found in candidates if found), None)
    return f"write {near}" if near else "write one of the names that 'barograph config reference' lists"


def _flat(parsed: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, object]]:
    for key, value in parsed.items():
        name = before + key
        if isinstance(value, dict) and name not in OPTIONS:
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _lines(text: str) -> dict[str, int]:
    """Dotted name -> the line it is on. tomllib does not say."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = re.sub(r"[\s\"']", "", header[1]) + "."
            found.setdefault(table.removesuffix("."), number)
        elif entry := _ENTRY.match(line):
            found.setdefault(table + re.sub(r"[\s\"']", "", entry[1]), number)
    return found


def _line_of(lines: Mapping[str, int], name: str) -> int:
    """Of an inline table's entry, the line of the table."""
    while name and name not in lines:
        name = name.rpartition(".")[0]
    return lines.get(name, 1)


def _not_toml(path: Path, text: str, error: str) -> str:
    at = re.search(r"\(at line (\d+), column \d+\)", error)
    number = int(at[1]) if at else len(text.splitlines()) or 1
    said = re.sub(r"\s*\(at .*\)$", "", error)
    lines = text.splitlines()
    written = lines[number - 1].strip() if number <= len(lines) else ""
    unquoted = re.fullmatch(r"([\w.-]+)\s*=\s*([^\s\"'\[{].*)", written)
    hint = f'write {unquoted[1]} = "{unquoted[2].strip()}"' if unquoted else 'write lines like cycle = "2s"'
    return f"{path}:{number}: this is not TOML ({said}): {hint}"
