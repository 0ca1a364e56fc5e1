"""Scenario files: strict TOML in, a Scenario out. Every error names the file and the field."""

from collections.abc import Mapping
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields
from pathlib import Path
from typing import Any

from barograph.config.toml_text import parse_toml
from barograph.engines.sim.calibration import CONSTANT_NAMES
from barograph.engines.sim.scenario.bounds import COST_MS, MOST_KEYS, require_bounds
from barograph.engines.sim.scenario.chain import chain
from barograph.engines.sim.scenario.definition import (
    Flow,
    LevelChange,
    Loss,
    Reassign,
    Scenario,
    SimulatedTopology,
    Trigger,
    Work,
)
from barograph.engines.sim.scenario.fields import MISSING, TableFields
from barograph.engines.sim.scenario.variants import variants, varied
from barograph.engines.sim.world.sync import Sync
from barograph.engines.sim.world.triggers import above_for
from barograph.model import BadInput, Edge, Grouping, MigrationMode, Node, Operator, Topology
from barograph.model.bounds import MOST_NODES
from barograph.model.checks import (
    require,
    require_at_most,
    require_between,
    require_number,
    require_positive,
    require_unique,
    require_whole,
)
from barograph.model.loads.load import Load
from barograph.model.loads.shapes import InBatches

SOURCE_FIXED = "a source has one instance for each of its partitions"


_DEFAULTS = {f.name: f.default for f in fields(Scenario) if f.default is not NO_DEFAULT}


def read_scenario(path: Path, variant: str = "") -> Scenario:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the scenario {str(path)!r} cannot be read: {getattr(error, 'strerror', 'not text')}") from None
    return parse_scenario(text, path.name, variant)


def title(text: str, where: str) -> str:
    found: str = TableFields(where, parse_toml(text, where)).take("title", str)
    return found


def variant_names(text: str, where: str) -> tuple[str, ...]:
    return tuple(variants(where, parse_toml(text, where)))


def parse_scenario(text: str, where: str, variant: str = "") -> Scenario:
    table = parse_toml(text, where)
    variants(where, table)  # also for a run without a variant: the whole file must be valid
    table = varied(where, table, variant) if variant else table
    top = TableFields(where, {key: value for key, value in table.items() if key not in ("variants", "matrix")})
    found = {
        "name": top.take("name", str) + (f"/{variant}" if variant else ""),
        "title": top.take("title", str),
        "paper": top.take("paper", str, _DEFAULTS["paper"]),
        "grain": top.take("grain", str, _DEFAULTS["grain"]),
        "enforce": top.take("enforce", bool, _DEFAULTS["enforce"]),
        "send_thread_s": top.number("send_thread_us", 0.0) / 1e6,
        "moves_fail_rows": top.take("moves_fail_rows", bool, _DEFAULTS["moves_fail_rows"]),
        "calibration": _constants(where, top.take("calibration", dict, {})),
        "options": top.take("options", dict, {}),
    }
    require(found["grain"] in ("rows", "flows"), f"{where}: grain must be rows or flows, not {found['grain']!r}")
    require_number(f"{where}: send_thread_us", found["send_thread_s"])
    for name in ("duration_s", "cycle_s", "epoch_s", "timeout_s", "step_s"):
        found[name] = float(top.number(name, _DEFAULTS.get(name, MISSING)))
        require_positive(f"{where}: {name}", found[name])
    nodes = tuple(n for t in top.tables("nodes", 1) for n in _nodes(t))
    require_unique(f"{where}: nodes", (n.name for n in nodes))
    workloads = tuple(_workload(t, found["duration_s"]) for t in top.tables("topologies", 1))
    require_unique(f"{where}: topologies", (w.topology.name for w in workloads))
    losses = tuple(_loss(t, nodes) for t in top.tables("losses"))
    reassign = top.take("reassign", dict, None)
    found["reassign"], found["sync"] = _reassign(where, reassign), _sync(where, top.take("sync", dict, None))
    scenario = Scenario(nodes=nodes, workloads=workloads, losses=losses, **found)
    top.done()
    require_bounds(scenario, where)
    return scenario


def _constants(where: str, table: Mapping[str, Any]) -> dict[str, float]:
    for name, value in table.items():
        require(name in CONSTANT_NAMES, f"{where}: calibration: unknown constant {name!r}")
        require_positive(f"{where}: calibration: {name}", value)
        require(name != "contention_loss" or value < 1, f"{where}: calibration: contention_loss must be below 1")
    return {name: float(value) for name, value in table.items()}


def _nodes(t: TableFields) -> list[Node]:
    count = t.take("count", int, None)
    name = t.take("name", str)
    values = {
        "cpu_pct": t.number("cpu_pct"),
        "slots": t.take("slots", int, 1),
        "seats": t.take("seats", int, 16),
        "memory_mb": t.number("memory_mb", None),
        "rack": t.take("rack", str, ""),
        "clock_mhz": t.number("clock_mhz", 1000.0),
    }
    t.done()
    if count is None:
        return [t.made(Node, name=name, **values)]
    require_whole(f"{t.where}: count", count, 1)
    require_at_most(f"{t.where}: count", count, MOST_NODES)
    return [t.made(Node, name=f"{name}-{i + 1}", **values) for i in range(count)]


def _workload(t: TableFields, duration_s: float) -> SimulatedTopology:
    reference = t.take("chain", dict, None)
    if reference is not None:
        t = chain(TableFields(f"{t.where}: chain", reference), t)
    operators, work = [], {}
    for each in t.tables("operators", 1):
        operator, its_work = _operator(each)
        operators.append(operator)
        work[operator.name] = its_work
    edges, flows = [], []
    for each in t.tables("edges"):
        edge, flow = _edge(each)
        edges.append(edge)
        flows.append(flow)
    found = t.take("trigger", dict, None)
    trigger = None if found is None else _trigger(TableFields(f"{t.where}: trigger", found), work, duration_s)
    producers = t.take("producers", int, 1)
    require_whole(f"{t.where}: producers", producers, 1)
    topology = t.made(
        Topology,
        name=t.take("name", str),
        operators=tuple(operators),
        edges=tuple(edges),
        workers=t.take("workers", int, None),
        level=t.take("level", int, 2),
        desired_nodes=t.take("desired_nodes", int, None),
        minimum_nodes=t.take("minimum_nodes", int, None),
        isolate_nodes=t.take("isolate_nodes", int, 0),
        target_p99_ms=t.number("target_p99_ms", None),
    )
    t.done()
    for operator in operators:
        fed = bool(topology.parents(operator.name))
        has_load = work[operator.name].load is not None
        require(has_load or fed, f"{t.where}: operator {operator.name} has neither a load nor an edge that feeds it")
        require(not (has_load and fed), f"{t.where}: operator {operator.name} has a load and is fed by an edge too")
    return SimulatedTopology(topology, work, tuple(flows), trigger, producers)


def _trigger(t: TableFields, work: Mapping[str, Work], duration_s: float) -> Trigger:
    """By raw events, ``events = [first, end]``, or by the load, ``above_rows_s`` and ``seconds``."""
    calm, level = t.take("calm", int, 2), t.take("level", int, 1)
    above, seconds = t.number("above_rows_s", None), t.number("seconds", 3.0)
    events, share = t.take("events", list, None), t.number("share", 0.8)
    t.done()
    require((above is None) != (events is None), f"{t.where}: either above_rows_s or events must be given")
    loads = [w.load for w in work.values() if w.load is not None]
    require(len(loads) == 1, f"{t.where}: a topology with a trigger has one source, not {len(loads)}")
    if events is not None:
        require(len(events) == 2, f"{t.where}: events must be [first, end], not {events!r}")
        require(isinstance(loads[0].shape, InBatches), f"{t.where}: events need a load in batches")
        return t.made(Trigger, calm=calm, level=level, events=tuple(events), share=share)
    require_positive(f"{t.where}: above_rows_s", above)
    require_number(f"{t.where}: seconds", seconds)
    turns = above_for(loads[0].segments(duration_s), above, seconds)
    changes = tuple(LevelChange(at_s, level if on else calm) for at_s, on in turns)
    return t.made(Trigger, calm=calm, level=level, changes=changes)


def _operator(t: TableFields) -> tuple[Operator, Work]:
    load = t.take("load", str, None)
    operator = t.made(
        Operator,
        name=t.take("name", str),
        parallelism=t.take("parallelism", int),
        source=load is not None,
        stateful=t.take("stateful", bool, False),
        min_parallelism=t.take("min_parallelism", int, 1),
        max_parallelism=t.take("max_parallelism", int, None),
        cpu_pct=t.number("cpu_pct", None),
        memory_mb=t.number("memory_mb", None),
        state_mb=t.number("state_mb", 0.0),
        fixed_because=t.take("fixed_because", str, SOURCE_FIXED if load is not None else ""),
    )
    cost_ms = t.number("cost_ms")
    require_positive(f"{t.where}: cost_ms", cost_ms)
    require_between(f"{t.where}: cost_ms", cost_ms, *COST_MS)
    work = t.made(
        Work,
        cost_s=cost_ms / 1000.0,
        spread=t.number("spread", 0.0),
        load=None if load is None else t.made(Load.parse, text=load),
        imbalance=t.number("imbalance", 0.0),
        live=t.take("live", bool, False),
    )
    t.done()
    return operator, work


def _edge(t: TableFields) -> tuple[Edge, Flow]:
    grouping = t.take("grouping", str, "shuffle")
    names = [g.value for g in Grouping]
    require(grouping in names, f"{t.where}: grouping must be one of {', '.join(names)}, not {grouping!r}")
    edge = t.made(Edge, source=t.take("source", str), target=t.take("target", str), grouping=Grouping(grouping))
    flow = t.made(
        Flow,
        selectivity=t.number("selectivity", 1.0),
        keys=t.take("keys", int, 1000),
        skew=t.number("skew", 0.0),
        sticky=t.number("sticky", 0.0),
    )
    require_at_most(f"{t.where}: keys", flow.keys, MOST_KEYS)
    t.done()
    return edge, flow


def _loss(t: TableFields, nodes: tuple[Node, ...]) -> Loss:
    loss = Loss(t.number("at_s"), t.take("node", str), t.take("slot", int, None), t.number("back_s", None))
    t.done()
    require_number(f"{t.where}: at_s", loss.at_s)
    require_number(f"{t.where}: back_s", loss.back_s or 0.0)
    node = next((n for n in nodes if n.name == loss.node), None)
    require(node is not None, f"{t.where}: there is no node {loss.node!r}")
    if node is not None and loss.slot is not None:
        require(0 <= loss.slot < node.slots, f"{t.where}: node {node.name} has no slot {loss.slot}")
    return loss


def _reassign(where: str, table: Mapping[str, Any] | None) -> Reassign | None:
    if table is None:
        return None
    t = TableFields(f"{where}: reassign", table)
    mode = t.take("mode", str, "cut")
    names = [m.value for m in MigrationMode]
    require(mode in names, f"{t.where}: mode must be one of {', '.join(names)}, not {mode!r}")
    every_s = t.number("every_s")
    found = t.made(
        Reassign,
        every_s=every_s,
        instances=t.take("instances", int),
        mode=MigrationMode(mode),
        first_s=t.number("first_s", every_s),
        delay_s=t.number("delay_s", 0.0),
    )
    t.done()
    return found


def _sync(where: str, table: Mapping[str, Any] | None) -> Sync | None:
    if table is None:
        return None
    t = TableFields(f"{where}: sync", table)
    found = t.made(Sync, node_s=t.number("node_s"), worker_s=t.number("worker_s"))
    t.done()
    return found
