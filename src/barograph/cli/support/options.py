"""Options that several commands have, as they are written on the command line."""

from collections.abc import Iterable

from barograph.config.toml_text import NotToml, parse_toml
from barograph.model.checks import require


def parse_options(texts: Iterable[str]) -> dict[str, object]:
    """``theta_pct=10`` as a name and a value: a number, true or false where it is one, else the text itself."""
    found: dict[str, object] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        require(bool(name and sign), f"--option {text!r} is not NAME=VALUE")
        try:
            found[name] = parse_toml(f"value = {value}", f"--option {name}")["value"]
        except NotToml:
            found[name] = value
    return found


def parse_seed(text: str) -> int:
    require(text.isdecimal(), f"--seed must be a whole number of at least 0, not {text!r}")
    return int(text)
