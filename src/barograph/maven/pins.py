"""Which jars there are to fetch: coordinates and checksums, as artifacts.toml pins them. Fetches nothing."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from barograph.model import BadInput
from barograph.model.checks import require

PINS = Path(__file__).with_name("artifacts.toml")


@dataclass(frozen=True, slots=True)
class Jar:
    """Maven coordinates of a jar, and the SHA-256 of its content in hexadecimal."""

    group: str
    artifact: str
    version: str
    sha256: str

    def __post_init__(self) -> None:
        for name in ("group", "artifact", "version"):
            part = getattr(self, name)
            # Parts become file names and XML, so other characters are refused.
            require(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", part) is not None, f"{part!r} is no {name} of a jar")
        fits = re.fullmatch(r"[0-9a-f]{64}", self.sha256) is not None
        require(fits, f"{self}: the checksum must be 64 hexadecimal digits, not {self.sha256!r}")

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def pinned(name: str, pins: Path = PINS) -> tuple[Jar, ...]:
    """The jars that belong together under a name. BadInput for a name that is not pinned."""
    known = tomllib.loads(pins.read_text(encoding="utf-8"))
    if name not in known:
        raise BadInput(f"no jars are pinned as {name!r}; there are {', '.join(sorted(known))}")
    return tuple(Jar(**jar) for jar in known[name])
