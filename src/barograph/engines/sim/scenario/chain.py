"""The reference chain of Aniello et al. in one line: a source, then simple and stateful operators in turn, an ack.

stages counts the operators behind the source, the ack included: 7 stages are 8 components. Every operator passes each
row on; half of the keys are spread evenly, and the other half are a constant of the sending instance.
"""

from itertools import pairwise
from typing import Any

from barograph.engines.sim.scenario.bounds import MOST_OPERATORS
from barograph.engines.sim.scenario.fields import TableFields
from barograph.model.checks import require_at_most, require_positive, require_whole


def chain(t: TableFields, topology: TableFields) -> TableFields:
    """The topology's table with the chain's operators and edges in it.

    rate: rows a second of each source instance. source, simple, stateful: instances of each operator of that kind.
    """
    stages = t.take("stages", int)
    counts = {kind: t.take(kind, int) for kind in ("source", "simple", "stateful")}
    rate, cost_ms, imbalance = t.number("rate"), t.number("cost_ms"), t.number("imbalance", 0.2)
    cpu_pct, state_mb = t.number("cpu_pct", 20.0), t.number("state_mb", 1.0)
    t.done()
    require_whole(f"{t.where}: stages", stages, 2)
    require_at_most(f"{t.where}: stages", stages, MOST_OPERATORS)
    require_positive(f"{t.where}: rate", rate)
    for kind, count in counts.items():
        require_whole(f"{t.where}: {kind}", count, 1)
    names = ["source", *(f"{_kind(i)}-{i}" for i in range(1, stages)), "ack"]
    load = f"constant {rate * counts['source']:g}"
    operators: list[dict[str, Any]] = []
    for i, name in enumerate(names):
        kind = "source" if i == 0 else "simple" if name == "ack" else _kind(i)
        operator: dict[str, Any] = {"name": name, "parallelism": counts[kind], "cost_ms": cost_ms, "cpu_pct": cpu_pct}
        operator["spread"] = 0.3
        if kind == "source":
            operator |= {"load": load, "imbalance": imbalance, "live": True}
        if kind == "stateful":
            operator |= {"stateful": True, "state_mb": state_mb}
        operators.append(operator)
    edges: list[dict[str, Any]] = []
    for i, (source, target) in enumerate(pairwise(names), start=1):
        keyed = target != "ack" and _kind(i) == "stateful"
        edge: dict[str, Any] = {"source": source, "target": target}
        edges.append({**edge, "grouping": "fields", "sticky": 0.5} if keyed else edge)
    return topology.with_tables(operators=operators, edges=edges)


def _kind(position: int) -> str:
    return "simple" if position % 2 == 1 else "stateful"
