"""Answers of the plug-in, as its ``View.scala`` writes them: columns of any length in one Arrow batch of one row."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from barograph.engines.spark.bridge.message import Message

Columns = Mapping[str, Sequence[int] | Sequence[str]]


def message(columns: Columns) -> Message:
    full = {"cursor": [1], "topology": [], "present": [], "read": [], **columns}
    arrays = {
        name: pa.array([list(values)], pa.list_(pa.string() if values and isinstance(values[0], str) else pa.int64()))
        for name, values in full.items()
    }
    batch = pa.record_batch(list(arrays.values()), names=list(arrays))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return Message(sink.getvalue().to_pybytes())


def layouts(*topologies: tuple[int, str, Mapping[str, int], Sequence[tuple[str, str]], Sequence[int]]) -> Columns:
    """(id, name, operators with their parallelism, edges, ids of instances) of each. The first operator is a source."""
    operators = [(at, o, n) for at, t in enumerate(topologies) for o, n in t[2].items()]
    edges = [(at, *e) for at, t in enumerate(topologies) for e in t[3]]
    first = {at: next(iter(t[2])) for at, t in enumerate(topologies)}
    return {
        "layout_topology": [t[0] for t in topologies],
        "layout_name": [t[1] for t in topologies],
        "operator_layout": [at for at, _, _ in operators],
        "operator_name": [o for _, o, _ in operators],
        "operator_parallelism": [n for _, _, n in operators],
        "operator_source": [int(o == first[at]) for at, o, _ in operators],
        "operator_stateful": [0] * len(operators),
        "operator_fixed_because": [""] * len(operators),
        "operator_repartition": [0] * len(operators),
        "edge_layout": [at for at, _, _ in edges],
        "edge_source": [a for _, a, _ in edges],
        "edge_target": [b for _, _, b in edges],
        "edge_grouping": ["shuffle"] * len(edges),
        "instance_id": [i for t in topologies for i in t[4]],
    }


def epochs(*planned: tuple[str, str, int, int, Sequence[tuple[str, int, str]]]) -> Columns:
    """(topology, run, number, planned_ms, seats as (operator, index, executor)) of each."""
    seats = [(at, *seat) for at, e in enumerate(planned) for seat in e[4]]
    return {
        "epoch_topology": [e[0] for e in planned],
        "epoch_run": [e[1] for e in planned],
        "epoch_number": [e[2] for e in planned],
        "epoch_orders": [1] * len(planned),
        "epoch_planned_ms": [e[3] for e in planned],
        "seat_epoch": [s[0] for s in seats],
        "seat_operator": [s[1] for s in seats],
        "seat_instance": [s[2] for s in seats],
        "seat_executor": [s[3] for s in seats],
        "seat_wanted": [""] * len(seats),
        "seat_because": [""] * len(seats),
    }


def life(topology: str, run: str, epoch: int, operator: str, index: int, ended_ms: int = 0, read: int = 0) -> Columns:
    return {
        "life_topology": [topology], "life_run": [run], "life_epoch": [epoch], "life_operator": [operator],
        "life_instance": [index], "life_executor": ["1"], "life_pid": [10], "life_tid": [11], "life_started_ms": [12],
        "life_ended_ms": [ended_ms], "life_read": [read],
    }  # fmt: skip
