"""Reading a table strictly: every error names the file, the table and the field."""

from collections.abc import Callable
from typing import Any, TypeVar

from barograph.model import BadInput
from barograph.model.checks import require

T = TypeVar("T")
MISSING = object()


class TableFields:
    """A table being read: each field is taken once, and what is left over at the end is an error."""

    def __init__(self, where: str, table: object) -> None:
        require(isinstance(table, dict), f"{where} must be a table")
        self.where = where
        self._left: dict[str, Any] = dict(table)  # type: ignore[call-overload]

    def take(self, name: str, kind: type | tuple[type, ...], default: Any = MISSING) -> Any:
        if name not in self._left:
            require(default is not MISSING, f"{self.where}: {name} is missing")
            return default
        value = self._left.pop(name)
        wanted = kind if isinstance(kind, tuple) else (kind,)
        ok = isinstance(value, wanted) and (not isinstance(value, bool) or bool in wanted)
        names = " or ".join(
            {"int": "whole number", "str": "text", "bool": "true or false"}.get(k.__name__, k.__name__)
            for k in wanted
            if k is not int or float not in wanted
        )
        require(ok, f"{self.where}: {name} must be a {names}, not {value!r}")
        return value

    def number(self, name: str, default: Any = MISSING) -> Any:
        return self.take(name, (float, int), default)

    def tables(self, name: str, least: int = 0) -> list["TableFields"]:
        value = self.take(name, list, [])
        require(len(value) >= least, f"{self.where}: {name} is missing")
        return [TableFields(f"{self.where}: {name}[{i}]", t) for i, t in enumerate(value)]

    def done(self) -> None:
        for name in self._left:
            raise BadInput(f"{self.where}: unknown field {name!r}")

    def made(self, make: Callable[..., T], **values: Any) -> T:
        """The value; an error of its own checks is given the file and the table."""
        try:
            return make(**values)
        except BadInput as error:
            raise BadInput(f"{self.where}: {error}") from None

    def with_tables(self, **tables: list[dict[str, Any]]) -> "TableFields":
        """The same table with these lists of tables put in; it may not have had them."""
        for name in tables:
            require(name not in self._left, f"{self.where}: {name} is given twice")
        return TableFields(self.where, {**self._left, **tables})
