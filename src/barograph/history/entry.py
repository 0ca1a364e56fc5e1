"""One entry of a history: a cycle, or a gap in which no controller ran. As a value, and as a row of a Parquet file.

The row has what people ask for in columns of their own, and the whole cycle as JSON, so that it can be read back
unchanged and replayed under another policy.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from barograph.model import BadInput, Cycle
from barograph.model.codec import from_json, to_json

_TEXT, _WHOLE, _NUMBER = pa.string(), pa.int64(), pa.float64()


def _list(**fields: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct(list(fields.items())))


SCHEMA = pa.schema(
    {
        "number": _WHOLE,
        "wall_ms": _WHOLE,
        "kind": _TEXT,
        "at_s": _NUMBER,
        "cycle_s": _NUMBER,
        "policy": _TEXT,
        "mode": _TEXT,
        "application": _TEXT,
        "version": _WHOLE,
        "nodes": _WHOLE,
        "nodes_used": _WHOLE,
        "cpu_allotted_pct": _NUMBER,
        "cpu_used_s": _NUMBER,
        "topologies": _list(
            topology=_TEXT, epoch=_WHOLE, completed_rows=_NUMBER, late_rows=_NUMBER, backlog_rows=_NUMBER,
            mean_ms=_NUMBER, p99_ms=_NUMBER, record_mean_ms=_NUMBER, record_p99_ms=_NUMBER, age_s=_NUMBER,
        ),
        "operators": _list(
            topology=_TEXT, operator=_TEXT, parallelism=_WHOLE, wanted_parallelism=_WHOLE, arrived=_NUMBER,
            executed=_NUMBER, emitted=_NUMBER, pending=_NUMBER, cpu_s=_NUMBER, share_pct=_NUMBER,
            forecast_arrived=_NUMBER,
        ),
        "errors": _list(
            topology=_TEXT, operator=_TEXT, made_in=_WHOLE, forecast_rows=_NUMBER, seen_rows=_NUMBER, error_rows=_NUMBER
        ),
        "changed": pa.bool_(),
        "moves": _list(instance=_TEXT, source=_TEXT, target=_TEXT),
        "rescales": _list(topology=_TEXT, operator=_TEXT, before=_WHOLE, after=_WHOLE),
        "cuts": pa.list_(_TEXT),
        "reasons": _list(about=_TEXT, code=_TEXT, why=_TEXT, numbers=pa.map_(_TEXT, _NUMBER)),
        "done": pa.list_(_TEXT),
        "refused": _list(what=_TEXT, code=_TEXT, reason=_TEXT),
        "left_out": _list(what=_TEXT, code=_TEXT, reason=_TEXT),
        "order_to_commit_s": _NUMBER,
        "gap_s": _NUMBER,
        "gap_why": _TEXT,
        "cycle": _TEXT,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which no controller ran."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class ForecastError:
    """What was forecast for this cycle and what came. made_in: the number of the entry with the forecast."""

    topology: str
    operator: str
    made_in: int
    forecast_rows: float
    seen_rows: float

    @property
    def error_rows(self) -> float:
        return self.seen_rows - self.forecast_rows


@dataclass(frozen=True, slots=True)
class Entry:
    """number: consecutive, so that a missing one is noticed. Exactly one of cycle and gap is set."""

    number: int
    wall_ms: int
    policy: str
    mode: str
    cycle: Cycle | None = None
    gap: Gap | None = None
    errors: tuple[ForecastError, ...] = ()


def errors_of(made_in: int, earlier: Cycle, now: Cycle) -> tuple[ForecastError, ...]:
    """How far off an earlier forecast was, now that its cycle has been seen; in rows of a cycle as long as this one."""
    longer = now.snapshot.cycle_s / earlier.snapshot.cycle_s
    seen = now.snapshot.metrics
    return tuple(
        ForecastError(
            f.topology, f.operator, made_in, f.arrived * longer, seen.of_operator(f.topology, f.operator).arrived
        )
        for f in earlier.forecast.operators
        if (f.topology, f.operator) in seen.rows_of_operator
    )


def to_row(entry: Entry) -> dict[str, Any]:
    """The entry as ``SCHEMA`` has it; columns that do not apply are null."""
    row: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    row |= {"number": entry.number, "wall_ms": entry.wall_ms, "policy": entry.policy, "mode": entry.mode}
    row |= {"kind": "gap" if entry.cycle is None else "cycle", "changed": False}
    if entry.gap is not None:
        row |= {"gap_s": entry.gap.seconds, "gap_why": entry.gap.why}
    if entry.cycle is not None:
        row |= _seen(entry.cycle) | _decided(entry.cycle)
        row["errors"] = [
            {n: getattr(e, n) for n in ("topology", "operator", "made_in", "forecast_rows", "seen_rows", "error_rows")}
            for e in entry.errors
        ]
        row["cycle"] = json.dumps(to_json(entry.cycle), separators=(",", ":"))
    return row


def from_row(row: Mapping[str, Any]) -> Entry:
    """Raises BadInput for a row that is no entry, as damage on a disk may make one."""
    try:
        return _from_row(row)
    except BadInput:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"it is damaged: {type(error).__name__}: {error}") from None


def _from_row(row: Mapping[str, Any]) -> Entry:
    gap = None if row["gap_s"] is None else Gap(row["gap_s"], row["gap_why"])
    cycle = None if row["cycle"] is None else from_json(Cycle, json.loads(row["cycle"]))
    errors = tuple(
        ForecastError(e["topology"], e["operator"], e["made_in"], e["forecast_rows"], e["seen_rows"])
        for e in row["errors"] or ()
    )
    return Entry(row["number"], row["wall_ms"], row["policy"], row["mode"], cycle, gap, errors)


def _seen(cycle: Cycle) -> dict[str, Any]:
    now = cycle.snapshot
    operators = []
    for t in now.topologies:
        for o in t.operators:
            m = now.metrics.of_operator(t.name, o.name)
            forecast, demand = cycle.forecast.of(t.name, o.name), cycle.demand.of(t.name, o.name)
            operators.append(
                {
                    "topology": t.name,
                    "operator": o.name,
                    "parallelism": o.parallelism,
                    "wanted_parallelism": None if demand is None else demand.parallelism,
                    **{n: getattr(m, n) for n in ("arrived", "executed", "emitted", "pending", "cpu_s")},
                    "share_pct": None if demand is None else sum(demand.shares_pct),
                    "forecast_arrived": None if forecast is None else forecast.arrived,
                }
            )
    return {
        "at_s": now.at_s,
        "cycle_s": now.cycle_s,
        "application": now.application,
        "version": now.version,
        "nodes": len(now.nodes),
        "nodes_used": len({s.node for s in now.placement.slots.values()}),
        "cpu_allotted_pct": sum(sum(d.shares_pct) for d in cycle.demand.operators),
        "cpu_used_s": float(now.metrics.columns["cpu_s"].sum()),
        "topologies": [
            {
                **{n: getattr(t, n) for n in ("topology", "epoch", "completed_rows", "late_rows", "age_s")},
                "backlog_rows": t.backlog_rows if t.backlog_known else None,
                "mean_ms": None if t.latency_due is None else t.latency_due.mean,
                "p99_ms": None if t.latency_due is None else t.latency_due.p99,
                "record_mean_ms": None if t.latency_record is None else t.latency_record.mean,
                "record_p99_ms": None if t.latency_record is None else t.latency_record.p99,
            }
            for t in now.topology_metrics
        ],
        "operators": operators,
    }


def _decided(cycle: Cycle) -> dict[str, Any]:
    now, plan, outcome = cycle.snapshot, cycle.plan, cycle.outcome
    moves = [(i, now.placement.get(i), s) for i, s in plan.placement.slots.items() if now.placement.get(i) != s]
    before = {(t.name, o.name): o.parallelism for t in now.topologies for o in t.operators}
    return {
        "changed": bool(moves or plan.rescales or plan.cuts),
        "moves": [{"instance": str(i), "source": str(a) if a else None, "target": str(b)} for i, a, b in moves],
        "rescales": [
            {"topology": r.topology, "operator": r.operator, "before": before.get((r.topology, r.operator)),
             "after": r.parallelism}
            for r in plan.rescales
        ],
        "cuts": list(plan.cuts),
        "reasons": _reasons(cycle),
        "done": None if outcome is None else list(outcome.done),
        "refused": None if outcome is None else [
            {"what": r.what, "code": r.code.value, "reason": r.reason} for r in outcome.refused
        ],
        "left_out": None if outcome is None else [
            {"what": r.what, "code": r.code.value, "reason": r.reason} for r in outcome.left_out
        ],
        "order_to_commit_s": None if outcome is None else outcome.order_to_commit_s,
    }  # fmt: skip


def _reasons(cycle: Cycle) -> Sequence[dict[str, Any]]:
    """Of every stage: why this was forecast, wanted and planned."""
    forecast = [f.reason for f in cycle.forecast.operators if f.reason is not None]
    demand = [d.reason for d in cycle.demand.operators if d.reason is not None]
    others = [r for r in cycle.demand.reasons if r not in cycle.plan.reasons]
    return [
        {"about": r.about, "code": r.code.value, "why": r.why, "numbers": list(r.numbers.items())}
        for r in (*forecast, *demand, *others, *cycle.plan.reasons)
    ]
