"""Values for single operators, as they are written. Pure.

    split=1..8,count=2..      least and most instances; one number is both
    count,words/split         names of operators
    split=40,count=25         a number for one instance: per cent of a core, MB, or how many instances there are

A name is an operator's, in every query that has one of that name, or QUERY/OPERATOR.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from barograph.config.written.form import Form
from barograph.model.checks import BadInput, require

T = TypeVar("T")
_RANGE = re.compile(r"(?P<least>\d{1,9})?(?P<to>\.\.)?(?P<most>\d{1,9})?")
_MORE_THAN_A_CORE = 100.0


@dataclass(frozen=True, slots=True)
class InstanceRange:
    """Least and most instances of an operator; most: None for no bound of its own."""

    least: int
    most: int | None


def parse_ranges(text: str) -> dict[str, InstanceRange]:
    return _pairs(text, _range, "OPERATOR=LEAST..MOST, for example split=1..8")


def parse_numbers(text: str) -> dict[str, float]:
    return _pairs(text, _number, "OPERATOR=NUMBER, for example split=40")


def parse_shares(text: str) -> dict[str, float]:
    return _pairs(text, _share, "OPERATOR=PER_CENT, above 0 and at most 100")


def parse_instances(text: str) -> dict[str, int]:
    return _pairs(text, _count, "OPERATOR=INSTANCES, for example split=4")


def parse_micros(text: str) -> dict[str, int]:
    return _pairs(text, _count, "OPERATOR=MICROSECONDS, for example split=100")


def parse_names(text: str) -> tuple[str, ...]:
    found = tuple(_pieces(text))
    require(all("=" not in name for name in found), f"{text!r} must be names of operators, for example split")
    return found


def ranges_as_text(limits: Mapping[str, object]) -> str:
    """``{"split": (1, 8)}`` as it is written; None for no bound."""
    pieces = []
    for name, bounds in limits.items():
        wrong = f"limits[{name!r}] must be (least, most), for example (1, 8), not {bounds!r}"
        require(isinstance(bounds, tuple | list) and len(bounds) == 2 and isinstance(name, str), wrong)
        least, most = ("" if b is None else b for b in bounds)  # type: ignore[attr-defined]  # it is a pair
        require(_range(f"{least}..{most}") is not None or (least, most) == ("", ""), wrong)
        if (least, most) != ("", ""):
            pieces.append(f"{name}={least}..{most}")
    return ",".join(pieces)


def _pairs(text: str, read: Callable[[str], T | None], form: str) -> dict[str, T]:
    found: dict[str, T] = {}
    for piece in _pieces(text):
        name, equals, value = (part.strip() for part in piece.partition("="))
        read_value = read(value) if name and equals else None
        if read_value is None:
            raise BadInput(f"{piece!r} is not {form}")
        require(name not in found, f"{text!r} names {name} twice")
        found[name] = read_value
    return found


def _pieces(text: str) -> Iterable[str]:
    pieces = [piece.strip() for piece in text.split(",")] if text.strip() else []
    require(all(pieces), f"{text!r} has nothing between two commas, or at an end")
    return pieces


def _range(text: str) -> InstanceRange | None:
    match = _RANGE.fullmatch(text)
    if match is None or not (match["least"] or match["most"]) or (match["most"] and not match["to"]):
        return None
    least = int(match["least"] or 1)
    most = least if match["to"] is None else int(match["most"]) if match["most"] else None
    return InstanceRange(least, most) if least >= 1 and (most is None or most >= least) else None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,6})?", text) and float(text) > 0 else None


def _share(text: str) -> float | None:
    found = _number(text)
    return None if found is None or found > _MORE_THAN_A_CORE else found


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,9}", text) and int(text) > 0 else None


def _near_pairs(read: Callable[[str], object | None], usual: str) -> Callable[[str], Iterable[str]]:
    """The pieces that are right as they are; of the others the name, with a value like it or else the usual one."""

    def near(text: str) -> Iterable[str]:
        found: dict[str, str] = {}
        for piece in text.split(","):
            name, _, value = (part.strip() for part in re.sub(r"[=:]", "=", piece, count=1).partition("="))
            numbers = re.findall(r"\d+(?:\.\d+)?", value)
            ordered = sorted(numbers, key=float)
            candidates = (value, "..".join(numbers), "..".join(ordered), *numbers[:1], usual)
            if name and name not in found:
                found[name] = next(c for c in candidates if read(c) is not None)
        yield ",".join(f"{name}={value}" for name, value in found.items())

    return near


def _near_names(text: str) -> Iterable[str]:
    yield ",".join(filter(None, (piece.partition("=")[0].strip() for piece in text.split(","))))


RANGES = Form("least and most instances of operators", parse_ranges, _near_pairs(_range, "1..8"))
NAMES = Form("names of operators, separated by commas", parse_names, _near_names)
NUMBERS = Form("numbers of operators", parse_numbers, _near_pairs(_number, "40"))
SHARES = Form("per cent of a core for operators", parse_shares, _near_pairs(_share, "40"))
INSTANCES = Form("instances of operators", parse_instances, _near_pairs(_count, "4"))
MICROS = Form("microseconds of operators", parse_micros, _near_pairs(_count, "100"))
