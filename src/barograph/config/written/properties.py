"""Reads settings that spark-submit itself takes: of spark-defaults.conf or a properties file, and of its words. Reads
only."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from barograph.model import BadInput

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ENTRY = re.compile(r"((?:\\.|[^\\\s=:])+)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)


def properties_of(path: Path) -> dict[str, str]:
    """The entries of a file in Java's format for properties, as spark-submit reads it."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8 text: spark-submit reads properties in UTF-8") from None
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    found = {}
    for line in _logical_lines(text):
        if entry := _ENTRY.fullmatch(line):
            found[_plain(entry[1])] = _plain(entry[2]).strip()
    return found


def conf_folder(spark_home: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """The user's own, or that of the user's own Spark, or that of ``spark_home``."""
    folder, home = environment.get("SPARK_CONF_DIR"), environment.get("SPARK_HOME")
    return Path(folder) if folder else Path(home or spark_home) / "conf"


def spark_defaults(folder: Path) -> dict[str, str]:
    """What spark-submit takes where no properties file is named: spark-defaults.conf, if there is one."""
    path = folder / "spark-defaults.conf"
    return properties_of(path) if path.is_file() else {}


def settings_of_words(words: Sequence[str], defaults: Mapping[str, str]) -> dict[str, str]:
    """What spark-submit takes from these words of its command line, and from its defaults where they name no file."""
    found, said, master = dict(defaults), dict[str, str](), ""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name not in ("--conf", "-c", "--master", "--properties-file"):
            continue
        value = value if equals else next(rest, "")
        if name == "--master":
            master = value
        elif name == "--properties-file":
            found = properties_of(Path(value))
        else:
            key, _, setting = value.partition("=")
            said[key.strip()] = setting
    return {**found, **said, **({"spark.master": master} if master else {})}


def _logical_lines(text: str) -> list[str]:
    """Without comments and empty lines; a line that ends with an odd number of backslashes goes on in the next."""
    lines, begun = [], ""
    for line in text.splitlines():
        bare = line.lstrip()
        if not begun and (not bare or bare[0] in "#!"):
            continue
        begun += bare
        backslashes = len(begun) - len(begun.rstrip("\\"))
        if backslashes % 2:
            begun = begun[:-1]
        else:
            lines.append(begun)
            begun = ""
    return [*lines, begun] if begun else lines


def _plain(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        code = found[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", one, text, flags=re.DOTALL)
