"""The status of a driver: nodes, topologies, placement, rates, latency, backlog. Reads only."""

import os
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from barograph.engines.spark.query.supervised_query import Supervised
from barograph.model import Node, Snapshot, TopologyMetrics

if TYPE_CHECKING:
    from barograph.engines.spark.driver.supervisor import Supervisor
    from barograph.engines.spark.engine import SparkEngine

_LATE_CS, _SPAN_CS = 50, 200  # in centiseconds: reports come a moment late; the rate is over two seconds


def describe(supervisor: "Supervisor") -> dict[str, Any]:
    engine = supervisor.engine
    now = engine.recently()
    queries = {q.topology: q for q in supervisor.queries}
    lengths_s = {**supervisor.bounds.most_s, **engine.pace.wanted_s}
    names = [*(t.name for t in now.topologies), *(n for n in queries if n not in {t.name for t in now.topologies})]
    return {
        "app": supervisor.app,
        "master": supervisor.master,
        "run": supervisor.run_name,
        "pid": os.getpid(),
        "frozen": supervisor.frozen,
        "limits_lifted": supervisor.left_limits.lifted or None,
        "controllers": [c for c in supervisor.controllers.table() if c["attached"]],
        "nodes": [_node(now, n) | _held_back(engine, n.name) | _enforcement(engine, n.name) for n in engine.nodes],
        "topologies": [
            _topology(now, name, queries.get(name), _out_rows_s(engine, name))
            | {"epoch_s": lengths_s.get(name), "resting": name in engine.gates.paused | engine.gates.resting}
            | {"limits": _limits(engine, now, name)}
            for name in names
        ],
    }


def _node(now: Snapshot, node: Node) -> dict[str, Any]:
    workers = [w for w in now.workers if w.slot.node == node.name]
    metrics = next((m for m in now.node_metrics if m.node == node.name), None)
    return {
        "name": node.name,
        "released": node in now.asleep,
        "executors": [w.executor for w in workers],
        "seats": sum(w.seats for w in workers),
        "cpu_pct": node.cpu_pct,
        "cpu_used_pct": None if metrics is None else round(100.0 * metrics.cpu_used_s / now.cycle_s, 1),
        "age_s": None if metrics is None else round(metrics.age_s, 1),
    }


def _held_back(engine: "SparkEngine", node: str) -> dict[str, Any]:
    deaths, left_s = engine.held_back().get(node, (0, None))
    return {"deaths_in_a_row": deaths, "held_back_s": None if left_s is None else round(left_s, 1)}


def _enforcement(engine: "SparkEngine", node: str) -> dict[str, Any]:
    """How the node's executors hold instances to their limits, and what they say against it."""
    mine = [e for e in engine.live_executors if engine.node_of(e.id) == node]
    return {
        "enforces": sorted({e.enforces for e in mine if e.enforces}),
        "enforces_because": sorted({e.enforces_because for e in mine if e.enforces_because}),
    }


def _limits(engine: "SparkEngine", now: Snapshot, topology: str) -> dict[str, dict[str, Any]]:
    """The limited instances: what each may use and what is reserved for it, what it used, for how long it was held."""
    found = {}
    shares = engine.shares.shares_pct
    for instance, limit_pct in sorted(engine.shares.limits_pct.items()):
        if instance.topology == topology and instance in now.placement.slots:
            row = now.metrics.row(instance)
            found[f"{instance.operator}/{instance.index}"] = {
                "limit_pct": round(limit_pct, 1),
                "share_pct": round(shares[instance], 1) if instance in shares else None,
                "used_pct": round(100.0 * row.cpu_s / now.cycle_s, 1),
                "throttled_pct": round(100.0 * row.throttled_s / now.cycle_s, 1),
            }
    return found


def _topology(now: Snapshot, name: str, query: Supervised | None, out_rows_s: float) -> dict[str, Any]:
    topology = next((t for t in now.topologies if t.name == name), None)
    metrics = next((m for m in now.topology_metrics if m.topology == name), TopologyMetrics(name))
    operators = () if topology is None else topology.operators
    in_rows_s = sum(now.metrics.of_operator(name, o.name).executed for o in operators if o.source) / now.cycle_s
    known = any(t == name for t, _ in now.metrics.rows_of_operator)
    by_node: dict[str, list[str]] = {n.name: [] for n in (*now.nodes, *now.asleep)}
    for instance, slot in sorted(now.placement.of_topology(name).slots.items()):
        by_node[slot.node].append(f"{instance.operator}/{instance.index}")
    return {
        "name": name,
        "doing": "running" if query is None else query.doing,
        "supervised": query is not None,
        "epoch": metrics.epoch,
        "operators": {o.name: o.parallelism for o in operators},
        "by_node": by_node,
        "in_rows_s": round(in_rows_s, 1) if known else None,
        "out_rows_s": round(out_rows_s, 1),
        "age_s": round(metrics.age_s, 1) if known else None,
        "latency_ms": None if metrics.latency_due is None else asdict(metrics.latency_due),
        "latency_record_ms": None if metrics.latency_record is None else asdict(metrics.latency_record),
        "backlog_rows": metrics.backlog_rows if known and metrics.backlog_known else None,
        "restarts": [] if query is None else [
            {"at_ms": r.at_ms, "cause": r.cause, "epoch": r.epoch, "down_s": round(r.down_s, 3),
             "rows_replayed": r.rows.read, "rows_repeated": r.rows.output}
            for r in query.restarts
        ],
    }  # fmt: skip


def _out_rows_s(engine: "SparkEngine", topology: str) -> float:
    now = int(time.time() * 100) - _LATE_CS
    return engine.output_rows(topology, now - _SPAN_CS, now) * 100 / _SPAN_CS
