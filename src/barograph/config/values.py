"""Values of options: how they are read, shown and written, and what to write instead of a wrong one. Pure."""

import contextlib
import difflib
import json
import math
import re
from collections.abc import Iterable, Sequence

from barograph.config.option import Kind, Option
from barograph.model.checks import BadInput
from barograph.model.loads.load import parse_duration_s

_ON, _OFF = ("on", "true", "yes"), ("off", "false", "no")
_WORDS = {"ms": "ms", "milli": "ms", "msec": "ms", "s": "s", "sec": "s", "m": "m", "min": "m", "h": "h", "hour": "h"}


class WrongValue(ValueError):  # noqa: N818  # the value is wrong, not the program
    """A value that an option cannot have. The caller says where it came from and what to write. why: of a text that
    is parsed, else empty."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


def read(option: Option, raw: object, text: bool) -> object:
    """The value inside the program. text: everything is written as text there, as in flags and in Spark's keys."""
    if option.off and raw == option.off:
        return None
    match option.kind:
        case Kind.DURATION:
            return _within(option, _duration_s(raw))
        case Kind.WHOLE:
            return _within(option, _whole(raw, text))
        case Kind.NUMBER:
            return _within(option, _number(raw, text))
        case Kind.SWITCH:
            return _switch(raw)
        case Kind.CHOICE:
            if raw in option.choices:
                return raw
        case Kind.TEXTS:
            if text and isinstance(raw, str):  # of one of Spark's keys; a flag is given once for each
                return _formed_all(option, filter(None, (each.strip() for each in raw.split(","))))
            if isinstance(raw, list | tuple) and all(isinstance(each, str) for each in raw):
                return _formed_all(option, raw)
        case Kind.CORES:
            return _cores(option, raw, text)
        case Kind.TEXT:
            if isinstance(raw, str) and (raw or text):
                return _formed(option, raw)
    raise WrongValue


def _formed(option: Option, text: str) -> str:
    """The text as it is, where it has the option's form."""
    if option.form is not None:
        try:
            option.form.check(text)
        except BadInput as error:
            raise WrongValue(str(error)) from None
    return text


def _formed_all(option: Option, texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(_formed(option, text) for text in texts)


def _within(option: Option, value: float) -> float:
    too_small = option.least is not None and value < option.least
    if too_small or (option.above is not None and value <= option.above):
        raise WrongValue
    if not math.isfinite(value) or (option.most is not None and value > option.most):
        raise WrongValue
    return value


def _duration_s(raw: object) -> float:
    if not isinstance(raw, str):
        raise WrongValue
    try:
        return parse_duration_s(raw)
    except BadInput:
        raise WrongValue from None


def _whole(raw: object, text: bool) -> int:
    if text and isinstance(raw, str) and re.fullmatch(r"-?\d{1,18}", raw):
        return int(raw)
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    raise WrongValue


def _number(raw: object, text: bool) -> float:
    if text and isinstance(raw, str):
        try:
            return float(raw)
        except ValueError:
            raise WrongValue from None
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return float(raw)
    raise WrongValue


def _switch(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.lower() in (*_ON, *_OFF):
        return raw.lower() in _ON
    raise WrongValue


def _cores(option: Option, raw: object, text: bool) -> float | tuple[float, ...]:
    pieces: Sequence[object] = [raw]
    if text and isinstance(raw, str):
        pieces = raw.split(",")
    elif isinstance(raw, list | tuple):
        pieces = raw
    found = tuple(_within(option, _number(piece, text)) for piece in pieces)
    if not found:
        raise WrongValue
    return found[0] if len(found) == 1 else found


def expected(option: Option) -> str:
    """What it can be, as in ``a time above 0s, or off``."""
    nouns = {
        Kind.DURATION: "a time", Kind.WHOLE: "a whole number", Kind.NUMBER: "a number", Kind.SWITCH: "on or off",
        Kind.CHOICE: f"one of {', '.join(option.choices)}", Kind.CORES: "cores",
        Kind.TEXT: "a text" if option.form is None else option.form.what,
        Kind.TEXTS: "a list of texts" if option.form is None else f"a list of {option.form.what}",
    }  # fmt: skip
    words = nouns[option.kind]
    if option.kind in (Kind.WHOLE, Kind.NUMBER) and option.unit:
        words += f" of {option.unit}" if option.unit != "per cent" else " in per cent"
    bounds = range_of(option)
    words = f"{words} {bounds}".rstrip()
    if option.kind is Kind.CORES:
        words += ", one number for all nodes or one for each"
    return words + (f", or {option.off}" if option.off else "")


def range_of(option: Option) -> str:
    unit = "s" if option.kind is Kind.DURATION else ""
    if option.above is not None:
        most = f" and at most {option.most:g}{unit}" if option.most is not None else ""
        return f"above {option.above:g}{unit}{most}"
    if option.least is not None and option.most is not None:
        return f"from {option.least:g}{unit} to {option.most:g}{unit}"
    return "" if option.least is None else f"of at least {option.least:g}{unit}"


def shown(option: Option, value: object) -> str:
    """A value as a flag has it."""
    if value is None:
        return option.off or "not set"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ",".join(f"{each:g}" if isinstance(each, float) else str(each) for each in value)
    if isinstance(value, int | float):
        return _plain_number(value) + ("s" if option.kind is Kind.DURATION else "")
    return str(value)


def in_toml(option: Option, value: object) -> str:
    """A value as the file has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return json.dumps(list(value), ensure_ascii=False)
    if isinstance(value, int | float) and option.kind is not Kind.DURATION:
        return _plain_number(value)
    return json.dumps(shown(option, value), ensure_ascii=False)


def _plain_number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def instead_of(option: Option, raw: object) -> object:
    """A value that is right and near the wrong one: its unit added, its number within the range, a similar word."""
    for candidate in (*_near(option, raw), option.default, option.example, option.least, option.most):
        try:
            found = read(option, candidate, text=True) if isinstance(candidate, str) else _checked(option, candidate)
        except WrongValue:
            continue
        if found is not None or (option.off and candidate == option.off):
            return found
    return "..."


def _checked(option: Option, value: object) -> object:
    if option.kind is Kind.DURATION and isinstance(value, int | float) and not isinstance(value, bool):
        return _within(option, float(value))
    return read(option, value, text=False)


def _near(option: Option, raw: object) -> list[object]:
    if isinstance(raw, str) and option.kind in (Kind.CHOICE, Kind.SWITCH):
        words = option.choices or ("on", "off")
        return list(difflib.get_close_matches(raw.lower(), words, 1, 0.5))
    if isinstance(raw, str) and option.off and difflib.get_close_matches(raw.lower(), [option.off], 1, 0.6):
        return [option.off]
    if option.kind is Kind.TEXTS:
        return [near for near in ([raw], _near_texts(option, raw), [option.example]) if near]
    if option.kind is Kind.TEXT and option.form is not None and isinstance(raw, str):
        return list(filter(None, option.form.near(raw)))
    number = _first_number(raw)
    if number is None or option.kind not in (Kind.DURATION, Kind.WHOLE, Kind.NUMBER, Kind.CORES):
        return []
    if option.kind is Kind.DURATION:
        found = re.match(r"\s*-?[\d.]+\s*([a-z]*)", str(raw).lower())
        word = "" if found is None else found[1].rstrip("s") if len(found[1]) > 1 and found[1] != "ms" else found[1]
        unit = next((_WORDS[w] for w in sorted(_WORDS, key=len, reverse=True) if word and word.startswith(w)), "s")
        written = f"{abs(number):.12g}{unit}"
        return [written if number >= 0 else "", *_bounds(option, parse_duration_s(written) if number >= 0 else number)]
    if option.kind is Kind.CORES:
        return [number]
    return [round(number) if option.kind is Kind.WHOLE else number, *_bounds(option, number)]


def _near_texts(option: Option, raw: object) -> list[str]:
    """Each text of a list that is right, and of the others one that is near."""
    if option.form is None:
        return []
    listed = [raw] if isinstance(raw, str) else raw if isinstance(raw, list | tuple) else []
    found = []
    for text in filter(lambda each: isinstance(each, str), listed):
        for candidate in (text, *option.form.near(text), option.example):
            with contextlib.suppress(WrongValue):
                found.append(_formed(option, candidate))
                break
    return found


def _bounds(option: Option, number: float) -> list[object]:
    bound = option.least if option.least is not None and number < option.least else option.most
    if bound is None:
        return []
    return [round(bound) if option.kind is Kind.WHOLE else bound]


def _first_number(raw: object) -> float | None:
    if isinstance(raw, bool):
        return None
    found = re.match(r"\s*(-?\d+(?:\.\d+)?)", str(raw))
    return float(found[1]) if found else None
