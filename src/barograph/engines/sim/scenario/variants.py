"""Variants of a scenario: the same file with fields set, listed one by one or as a matrix of values.

    [[variants]]
    name = "nodes-24"
    set = {"nodes.0.count" = 24}

    [[matrix]]
    name = "{mode}-m{moved}"
    axes = {mode = ["cut", "worker"], moved = [1, 2]}
    set = {"reassign.mode" = "{mode}", "reassign.instances" = "{moved}"}

A matrix has a variant for every combination of its axes' values: cut-m1, cut-m2, worker-m1, worker-m2. An axis is a
list of values, which ``set`` puts where it says "{axis}", or a table of names, each with the fields that it sets
itself. The left part of a setting is the path of a field. Nothing here knows what the fields mean.
"""

import copy
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from barograph.engines.sim.scenario.bounds import MOST_VARIANTS
from barograph.engines.sim.scenario.fields import TableFields
from barograph.model import BadInput
from barograph.model.checks import require, require_at_most, require_unique

Settings = Mapping[str, Any]


def variants(where: str, table: Mapping[str, Any]) -> dict[str, Settings]:
    """Name -> path of a field -> its value, of every variant of a scenario's table."""
    found: list[tuple[str, Settings]] = []
    top = TableFields(where, {key: table[key] for key in ("variants", "matrix") if key in table})
    for each in top.tables("variants"):
        found.append((each.take("name", str), each.take("set", dict)))
        each.done()
    for each in top.tables("matrix"):
        found += _combinations(where, each, len(found))
    require_unique(f"{where}: variants", (name for name, _ in found))
    return dict(found)


def varied(where: str, table: Mapping[str, Any], variant: str) -> dict[str, Any]:
    """The scenario's table with the fields of one variant set."""
    known = variants(where, table)
    require(variant in known, f"{where} has no variant {variant!r}; it has {', '.join(known) or 'none'}")
    found: dict[str, Any] = copy.deepcopy(dict(table))
    for path, value in known[variant].items():
        *parents, last = path.split(".")
        at: Any = found
        try:
            for key in parents:
                at = at[int(key)] if isinstance(at, list) else at[key]
            at[int(last) if isinstance(at, list) else last] = copy.deepcopy(value)
        except (KeyError, IndexError, ValueError, TypeError):
            raise BadInput(f"{where}: variant {variant}: there is no field {path!r}") from None
    return found


def _combinations(where: str, t: TableFields, before: int) -> Iterator[tuple[str, Settings]]:
    """before: how many variants the file has had so far."""
    pattern, axes, common = t.take("name", str), t.take("axes", dict), t.take("set", dict, {})
    t.done()
    require(bool(axes), f"{t.where}: axes is empty")
    choices: list[list[tuple[str, Any, Settings]]] = []
    for axis, values in axes.items():
        ok = isinstance(values, list) or (
            isinstance(values, dict) and all(isinstance(v, dict) for v in values.values())
        )
        require(ok and bool(values), f"{t.where}: axis {axis} must be a list of values or a table of tables of fields")
        require(f"{{{axis}}}" in pattern, f"{t.where}: the name {pattern!r} does not have {{{axis}}} in it")
        named = values.items() if isinstance(values, dict) else ((value, {}) for value in values)
        choices.append([(axis, value, own) for value, own in named])
    require_at_most(f"{where}: the number of variants", before + math.prod(map(len, choices)), MOST_VARIANTS)
    for chosen in itertools.product(*choices):
        values = {f"{{{axis}}}": value for axis, value, _ in chosen}
        name = pattern
        for mark, value in values.items():
            name = name.replace(mark, str(value))
        settings = {path: values.get(v, v) if isinstance(v, str) else v for path, v in common.items()}
        for _, _, own in chosen:
            settings |= own
        yield name, settings
