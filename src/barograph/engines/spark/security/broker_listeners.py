"""What a Kafka broker's listeners ask of their clients, as its settings say. Reads its file only."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_MAIN = "kafka.Kafka"
_OVERRIDE = "--override"
_KNOWN = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Listener:
    """asks: for what, of a client that connects; empty: for nothing."""

    name: str
    port: int
    asks: str


def listeners(words: tuple[str, ...], folder: Path) -> tuple[Listener, ...]:
    """words: the broker's command line. folder: in which it runs. OSError where its settings cannot be read."""
    settings = _settings(words, folder)
    pairs = settings.get("listener.security.protocol.map") or ",".join(f"{name}:{name}" for name in _KNOWN)
    protocols = dict(pair.strip().upper().split(":", 1) for pair in pairs.split(",") if ":" in pair)
    found = []
    for place in settings.get("listeners", "PLAINTEXT://:9092").split(","):
        name, _, address = place.strip().partition("://")
        port = address.rpartition(":")[2]
        if port.isdecimal():
            name = name.upper()
            found.append(Listener(name, int(port), _asks(name, protocols.get(name, ""), settings)))
    return tuple(found)


def _asks(name: str, protocol: str, settings: Mapping[str, str]) -> str:
    if protocol.startswith("SASL_"):
        return "a login"
    own = f"listener.name.{name.lower()}.ssl.client.auth"
    wanted = settings.get(own, settings.get("ssl.client.auth", "none"))
    return "a certificate" if protocol == "SSL" and wanted == "required" else ""


def _settings(words: tuple[str, ...], folder: Path) -> dict[str, str]:
    """Of the file that is named first, and of the command line, which wins."""
    given = words[words.index(_MAIN) + 1 :]
    text = (folder / given[0]).read_text(encoding="utf-8", errors="replace") if given else ""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and line[0] not in "#!"]
    lines += [given[at + 1] for at, word in enumerate(given[:-1]) if word == _OVERRIDE]
    pairs = (line.partition("=") for line in lines)
    return {key.strip(): value.strip() for key, _, value in pairs}
