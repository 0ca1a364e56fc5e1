"""Whether the policy and its options that a configuration names exist. Config cannot say: it does not know policies."""

import difflib
from collections.abc import Collection, Iterable

from barograph.config import Config
from barograph.config.policy_options import parse_options
from barograph.model import BadInput
from barograph.policy.definition import Policy, options_of, with_options
from barograph.policy.registry import DEFAULT, known_names, named


def require_policy(config: Config, also: Collection[str] = ()) -> None:
    """Refuse a policy or an option of it that does not exist: where it is written, and what to write instead.

    also: names that a command takes besides those of policies; their options are checked there.
    """
    name = config["policy"]
    if name in also:
        return
    if name is not None and name not in (names := known_names()):
        near = difflib.get_close_matches(name.lower(), names, 1, 0.5)
        raise config.refused("policy", "the name of a policy", near[0] if near else DEFAULT, _why(name))
    if name is None:
        return
    policy = named(name)
    for text in config["options"]:
        try:
            with_options(policy, parse_options([text]))
        except BadInput as error:
            right = tuple(_near(policy, config["options"]))
            raise config.refused("options", f"options of policy {name}", right, str(error)) from None


def _why(name: str) -> str:
    try:
        named(name)
    except BadInput as error:
        return str(error)
    raise AssertionError(f"there is a policy {name}")


def _near(policy: Policy, texts: Iterable[str]) -> Iterable[str]:
    """The options as they are where they are right, else with the nearest name and the value that it has now."""
    known = {n: v for n, v in options_of(policy).items() if isinstance(v, bool | int | float | str)}
    for text in texts:
        near = difflib.get_close_matches(text.partition("=")[0], known, 1, 0.5) or ["horizon_cycles"]
        for candidate in (text, f"{near[0]}={text.partition('=')[2]}", f"{near[0]}={_plain(known[near[0]])}"):
            if _is_right(policy, candidate):
                yield candidate
                break


def _is_right(policy: Policy, text: str) -> bool:
    try:
        with_options(policy, parse_options([text]))
    except BadInput:
        return False
    return True


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
