"""Fixed CPU shares for a run: as given, or taken from the JSON of another run. It starts nothing.

``fixed-peak``: each operator gets the largest share that any of its instances had there. ``fixed-mean``: what one of
its instances used on average. ``fixed-equal``: the core-seconds that were reserved there in total, constant over the
run, and distributed over the operators in proportion to their mean shares. The other run may have had any policy or
none; where it gave no shares, the CPU that instances used is taken instead.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barograph.model import BadInput
from barograph.model.checks import require

GIVEN, PEAK, MEAN, EQUAL = "fixed", "fixed-peak", "fixed-mean", "fixed-equal"
_LIKE = (PEAK, MEAN, EQUAL)


def fixed_shares(
    policy: str,
    given: Mapping[str, float],
    like: Path | None,
    parallelism: Mapping[str, int],
    places: tuple[str, str] = ("--share", "--like"),
) -> dict[str, float]:
    """Per cent of a core for one instance of each operator; empty for policies without fixed shares. places: where the
    shares and the other run were named."""
    share, named = places
    require(not given or policy == GIVEN, f"{share} can only be used with policy {GIVEN}, not with {policy}: remove it")
    for operator in given:
        known = ", ".join(parallelism)
        require(operator in parallelism, f"{share}: there is no operator {operator!r}: write one of {known}")
    if policy not in _LIKE:
        can = f"{named} can only be used with policies {', '.join(_LIKE)}, not with {policy}: remove it"
        require(like is None, can)
        return dict(given)
    require(like is not None, f"policy {policy} takes its shares from another run: give its JSON with --like FILE")
    assert like is not None
    other = _read(like)
    found = {operator: _of_instance(other, operator, policy, like) for operator in parallelism}
    if policy != EQUAL:
        return found
    reserved_core_s = _number(_part(other, "cpu_core_s", like), "reserved", like)
    return equal_shares(found, parallelism, reserved_core_s, _number(other, "seconds", like))


def _of_instance(other: Mapping[str, Any], operator: str, policy: str, path: Path) -> float:
    """Per cent of a core of one instance: the share it was given there, or else what it used."""
    peak = policy == PEAK
    asked = other.get("shares")
    if isinstance(asked, dict) and isinstance(asked.get(operator), dict) and policy != MEAN:
        return _number(asked[operator], "max" if peak else "mean", path)
    series = [s for name, s in _part(other, "operators", path).items() if name.rpartition("/")[2] == operator]
    require(bool(series), f"{path}: the run has no operator {operator!r}")
    used, instances = ([float(v) for v in _list(series[0], key, path)] for key in ("used_pct", "instances"))
    each = [pct / count for pct, count in zip(used, instances, strict=True) if count > 0]
    found = max(each) if peak else sum(each) / len(each)
    require(found > 0, f"{path}: operator {operator} used no CPU there, so no share can be taken from it")
    return found


def equal_shares(
    mean_pct: Mapping[str, float], parallelism: Mapping[str, int], core_s: float, seconds: float
) -> dict[str, float]:
    """The core-seconds, constant over the time, distributed in proportion to the mean share of each operator."""
    in_all_pct = sum(mean_pct[o] * parallelism[o] for o in mean_pct)
    times = 100.0 * core_s / seconds / in_all_pct
    return {o: share * times for o, share in mean_pct.items()}


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
    require(isinstance(found, dict) and bool(found), f"{path}: the run's JSON has no {key}, which is needed")
    return dict(found or {})


def _list(of: Any, key: str, path: Path) -> list[Any]:
    found = of.get(key) if isinstance(of, dict) else None
    fits = isinstance(found, list) and bool(found) and all(isinstance(v, int | float) for v in found)
    require(fits, f"{path}: {key} of an operator is not a list of numbers")
    return list(found or ())


def _number(of: Mapping[str, Any], key: str, path: Path) -> float:
    found = of.get(key)
    fits = isinstance(found, int | float) and not isinstance(found, bool) and found > 0
    require(fits, f"{path}: {key} is {'unknown' if found is None else 'not a number above 0'}, and it is needed")
    return float(found or 0.0)
