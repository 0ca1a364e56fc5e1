"""Options of a policy as they are written: NAME=VALUE. Which a policy has, the policy says."""

from collections.abc import Iterable

from barograph.config.toml_text import NotToml, parse_toml
from barograph.model.checks import require


def parse_options(texts: Iterable[str]) -> dict[str, object]:
    """``theta_pct=10`` as a name and a value: a number, true or false where it is one, else the text itself."""
    found: dict[str, object] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        require(bool(name and sign), f"{text!r} is not NAME=VALUE, for example theta_pct=10")
        try:
            found[name] = parse_toml(f"value = {value}", f"--option {name}")["value"]
        except NotToml:
            found[name] = value
    return found
