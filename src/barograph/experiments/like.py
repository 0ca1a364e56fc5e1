"""Fixed shares for a run: as given, or taken from the JSON of another run. Refuses what cannot be; starts nothing.

``fixed-peak``: each operator at the most that any of its instances was allotted there. ``fixed-equal``: the same
core-seconds in total, held for the whole run, spread over the operators in proportion to their mean shares.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barograph.model import BadInput
from barograph.model.checks import require

GIVEN, PEAK, EQUAL = "fixed", "fixed-peak", "fixed-equal"


def fixed_shares(
    policy: str, given: Mapping[str, float], like: Path | None, parallelism: Mapping[str, int]
) -> dict[str, float]:
    """Of one instance of each operator, per cent of a core; empty for policies that have no fixed shares."""
    require(not given or policy == GIVEN, f"--share is of policy {GIVEN}, not of {policy}")
    for operator in given:
        known = ", ".join(parallelism)
        require(operator in parallelism, f"--share: there is no operator {operator!r}; there are {known}")
    if policy not in (PEAK, EQUAL):
        require(like is None, f"--like is of policies {PEAK} and {EQUAL}, not of {policy}")
        return dict(given)
    require(like is not None, f"policy {policy} takes its shares from another run: --like FILE with that run's JSON")
    assert like is not None
    other = _read(like)
    shares = _part(other, "shares", like)
    found: dict[str, float] = {}
    for operator in parallelism:
        found[operator] = _number(_part(shares, operator, like), "max" if policy == PEAK else "mean", like)
    if policy == PEAK:
        return found
    allotted_core_s = _number(_part(other, "cpu_core_s", like), "allotted", like)
    return equal_shares(found, parallelism, allotted_core_s, _number(other, "seconds", like))


def equal_shares(
    mean_pct: Mapping[str, float], parallelism: Mapping[str, int], allotted_core_s: float, seconds: float
) -> dict[str, float]:
    """So many core-seconds held evenly over the time, and spread in proportion to the mean share of each operator."""
    in_all_pct = sum(mean_pct[o] * parallelism[o] for o in mean_pct)
    times = 100.0 * allotted_core_s / seconds / in_all_pct
    return {o: share * times for o, share in mean_pct.items()}


def parse_shares(text: str) -> dict[str, float]:
    """``split=40,count=60`` as a mapping."""
    found: dict[str, float] = {}
    for piece in filter(None, text.split(",")):
        operator, equals, share = piece.partition("=")
        try:
            pct = float(share)
        except ValueError:
            pct = 0.0
        if not equals or not operator or not 0 < pct <= 100:
            raise BadInput(f"--share {text!r}: {piece!r} is not OPERATOR=PER_CENT, above 0 and at most 100")
        require(operator not in found, f"--share {text!r} names {operator} twice")
        found[operator] = pct
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"--like {str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise BadInput(f"--like {str(path)!r} is not JSON: give what 'barograph run --format json' printed") from None
    require(isinstance(found, dict), f"--like {str(path)!r} is not the JSON of a run")
    return dict(found)


def _part(of: Mapping[str, Any], key: str, path: Path) -> dict[str, Any]:
    found = of.get(key)
    require(isinstance(found, dict) and bool(found), f"{path}: its run tells no {key}: take one that a policy steered")
    return dict(found or {})


def _number(of: Mapping[str, Any], key: str, path: Path) -> float:
    found = of.get(key)
    fits = isinstance(found, int | float) and not isinstance(found, bool) and found > 0
    require(fits, f"{path}: {key} is no number above 0")
    return float(found or 0.0)
