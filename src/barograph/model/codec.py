"""Every value to JSON and back, strictly: what is read is exactly what the value's fields say, or it is refused.

Unknown and missing fields, wrong types, NaN and infinity are refused with one sentence that names the path of the
field. An instance is written ``topology/operator/index``, a slot ``node/slot``, columns and matrices as lists, a
placement as a list of ``{topology, operator, index, node, slot}``, a load as its text.
"""

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from barograph.model.checks import BadInput, require
from barograph.model.cluster import Slot
from barograph.model.loads.load import Load
from barograph.model.metrics import EdgeTraffic, Metrics
from barograph.model.placement import Placement
from barograph.model.topology import Instance

T = TypeVar("T")
_AS_TEXT = frozenset((Instance, Slot, Load))
_MOST_LISTED = 12  # an error that lists more choices is hard to read
_PLACE = ("topology", "operator", "index", "node", "slot")


def to_json(value: object) -> Any:
    """What ``json.dumps`` takes, for any value of the model."""
    try:
        return _quick(value)
    except BadInput:  # the same again, with the path of what is wrong
        return _plain(value, type(value).__name__)


def from_json(cls: type[T], data: object) -> T:
    """The value that ``to_json`` was given. Raises BadInput, which names the wrong field."""
    found: T = _read(cls, data, cls.__name__)
    return found


def _quick(value: Any) -> Any:
    """As ``_plain``, without the path, which would take most of the time for a snapshot of many instances."""
    kind: Any = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is tuple:
        return [_quick(item) for item in value]
    if kind in _AS_TEXT:
        return str(value)
    names = _field_names(kind)
    if names and kind is not Placement:
        return {name: _quick(getattr(value, name)) for name in names}
    return _plain(value, kind.__name__)


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()


def _plain(value: Any, path: str) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        require(math.isfinite(value), f"{path} is {value}, which is not a finite number")
        return value
    if isinstance(value, Instance | Slot | Load):
        return str(value)
    if isinstance(value, Placement):
        return [
            {"topology": i.topology, "operator": i.operator, "index": i.index, "node": s.node, "slot": s.index}
            for i, s in value.slots.items()
        ]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item, f"{path}[{key}]") for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item, f"{path}[{i}]") for i, item in enumerate(value)]
    require(is_dataclass(value) and not isinstance(value, type), f"{path} is no value of the model: {value!r}")
    return {f.name: _plain(getattr(value, f.name), f"{path}.{f.name}") for f in fields(value)}


def _read(hint: Any, data: Any, path: str) -> Any:
    special = _SPECIAL.get(hint)
    if special is not None:
        return special(data, path)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if data is None and type(None) in args:
            return None
        (kind,) = (a for a in args if a is not type(None))
        return _read(kind, data, path)
    if origin is tuple:
        require(isinstance(data, list), f"{path} must be a list, not {_shown(data)}")
        return tuple(_read(args[0], item, f"{path}[{i}]") for i, item in enumerate(data))
    if origin is Mapping:
        require(isinstance(data, dict), f"{path} must be an object, not {_shown(data)}")
        return {_read(args[0], k, path): _read(args[1], item, f"{path}[{k}]") for k, item in data.items()}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        choices = f"one of {', '.join(hint)}" if len(hint) <= _MOST_LISTED else f"a {hint.__name__}"
        require(isinstance(data, str) and data in set(hint), f"{path} must be {choices}, not {_shown(data)}")
        return hint(data)
    require(is_dataclass(hint), f"{path} has no form in JSON")
    return _object(hint, data, path)


def _object(cls: Any, data: Any, path: str) -> Any:
    require(isinstance(data, dict), f"{path} must be an object, not {_shown(data)}")
    known = _fields(cls)
    for name in data:
        require(name in known, f"{path} has no field {name!r}; it has {', '.join(known)}")
    found = {}
    for name, (field, hint) in known.items():
        if name in data:
            found[name] = _read(hint, data[name], f"{path}.{name}")
        else:
            optional = field.default is not MISSING or field.default_factory is not MISSING
            require(optional, f"{path}.{name} is missing")
    return _made(cls, path, **found)


def _made(cls: Any, path: str, **found: Any) -> Any:
    """The value; an error of its own checks is given the path of the field."""
    try:
        return cls(**found)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


@cache
def _fields(cls: Any) -> dict[str, tuple[Field[Any], Any]]:
    hints = get_type_hints(cls)
    return {f.name: (f, hints[f.name]) for f in fields(cls)}


def _shown(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _text(data: Any, path: str) -> str:
    require(isinstance(data, str), f"{path} must be text, not {_shown(data)}")
    return str(data)


def _whole(data: Any, path: str) -> int:
    ok = isinstance(data, int) and not isinstance(data, bool)
    require(ok, f"{path} must be a whole number, not {_shown(data)}")
    return int(data)


def _number(data: Any, path: str) -> float:
    ok = isinstance(data, int | float) and not isinstance(data, bool) and math.isfinite(data)
    require(ok, f"{path} must be a number, not {_shown(data)}")
    return float(data)


def _truth(data: Any, path: str) -> bool:
    require(isinstance(data, bool), f"{path} must be true or false, not {_shown(data)}")
    return bool(data)


def _parsed(parse: Callable[[str], Any]) -> Callable[[Any, str], Any]:
    def read(data: Any, path: str) -> Any:
        try:
            return parse(_text(data, path))
        except BadInput as error:
            raise error if str(error).startswith(path) else BadInput(f"{path}: {error}") from None

    return read


def _no_file(path: str) -> str:
    raise BadInput(f"the trace {path!r} is a file of the sender and cannot be read here; write its points as steps")


def _placement(data: Any, path: str) -> Placement:
    require(isinstance(data, list), f"{path} must be a list, not {_shown(data)}")
    slots: dict[Instance, Slot] = {}
    for i, row in enumerate(data):
        here = f"{path}[{i}]"
        require(isinstance(row, dict), f"{here} must be an object, not {_shown(row)}")
        for name in row:
            require(name in _PLACE, f"{here} has no field {name!r}; it has {', '.join(_PLACE)}")
        for name in _PLACE:
            require(name in row, f"{here}.{name} is missing")
        names = {n: _text(row[n], f"{here}.{n}") for n in ("topology", "operator")}
        instance = _made(Instance, here, **names, index=_whole(row["index"], f"{here}.index"))
        require(instance not in slots, f"{here} places {instance} twice")
        node, index = _text(row["node"], f"{here}.node"), _whole(row["slot"], f"{here}.slot")
        slots[instance] = _made(Slot, here, node=node, index=index)
    return Placement(slots)


def _column(data: Any, path: str) -> np.ndarray[Any, Any]:
    require(isinstance(data, list), f"{path} must be a list, not {_shown(data)}")
    return np.array([_number(v, f"{path}[{i}]") for i, v in enumerate(data)], dtype=np.float64)


def _metrics(data: Any, path: str) -> Metrics:
    require(isinstance(data, dict), f"{path} must be an object, not {_shown(data)}")
    known = ("instances", "columns", "age_s")
    for name in data:
        require(name in known, f"{path} has no field {name!r}; it has {', '.join(known)}")
    require("instances" in data, f"{path}.instances is missing")
    instances = _read(tuple[Instance, ...], data["instances"], f"{path}.instances")
    columns = data.get("columns", {})
    require(isinstance(columns, dict), f"{path}.columns must be an object, not {_shown(columns)}")
    read = {name: _column(c, f"{path}.columns.{name}") for name, c in columns.items()}
    age_s = _column(data.get("age_s", []), f"{path}.age_s")  # histories from before it was recorded have none
    found: Metrics = _made(Metrics, path, instances=instances, columns=read, age_s=age_s)
    return found


def _edge_traffic(data: Any, path: str) -> EdgeTraffic:
    require(isinstance(data, dict), f"{path} must be an object, not {_shown(data)}")
    needed = ("topology", "source", "target", "rows")
    known = (*needed, "age_s")
    for name in data:
        require(name in known, f"{path} has no field {name!r}; it has {', '.join(known)}")
    for name in needed:
        require(name in data, f"{path}.{name} is missing")
    lines = data["rows"]
    require(isinstance(lines, list), f"{path}.rows must be a list, not {_shown(lines)}")
    rows = [_column(line, f"{path}.rows[{i}]") for i, line in enumerate(lines)]
    require(len({len(r) for r in rows}) <= 1, f"{path}.rows must be a matrix: its rows differ in length")
    matrix = np.stack(rows) if rows else np.zeros((0, 0))
    names = {n: _text(data[n], f"{path}.{n}") for n in ("topology", "source", "target")}
    age_s = _number(data.get("age_s", 0.0), f"{path}.age_s")
    found: EdgeTraffic = _made(EdgeTraffic, path, **names, rows=matrix, age_s=age_s)
    return found


_SPECIAL: dict[Any, Callable[[Any, str], Any]] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: _truth,
    Instance: _parsed(Instance.parse),
    Slot: _parsed(Slot.parse),
    Load: _parsed(lambda text: Load.parse(text, read=_no_file)),
    Placement: _placement,
    Metrics: _metrics,
    EdgeTraffic: _edge_traffic,
}
