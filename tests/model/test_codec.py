"""JSON of every value: what is written is read back the same, and what is not exactly right is refused by path."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import barograph.model as model
from barograph.model import BadInput, Metrics, Node, Operator, Placement, Plan, Reason, ReasonCode, Snapshot, Topology
from barograph.model.codec import from_json, to_json
from barograph.model.metrics import COLUMNS

names = st.text(st.sampled_from("abcxyz09_-."), min_size=1, max_size=6)
numbers = st.floats(0, 1e9, allow_nan=False)
positive = st.floats(0.01, 1e6, allow_nan=False)
whole = st.integers(0, 50)
instances = st.builds(model.Instance, names, names, whole)
slots = st.builds(model.Slot, names, whole)
reasons = st.builds(
    Reason,
    names,
    st.sampled_from(ReasonCode),
    st.text(max_size=10),
    st.dictionaries(names, st.floats(-1e6, 1e6), max_size=2),
)
placements = st.builds(Placement, st.dictionaries(instances, slots, max_size=4))
operators = st.builds(
    Operator,
    names,
    st.integers(1, 9),
    source=st.booleans(),
    stateful=st.booleans(),
    cpu_pct=st.none() | numbers,
    state_mb=numbers,
    max_parallelism=st.none() | st.integers(1, 9),
    fixed_because=st.text(max_size=8),
)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    mine = draw(st.lists(operators, min_size=1, max_size=3, unique_by=lambda o: o.name))
    edges = [
        model.Edge(a.name, b.name, draw(st.sampled_from(model.Grouping)), feedback=draw(st.booleans()))
        for i, a in enumerate(mine)
        for b in mine[i + 1 :]
    ]
    level, nodes = draw(st.integers(1, 4)), draw(st.none() | st.integers(1, 9))
    return Topology(draw(names), tuple(mine), tuple(edges), level=level, desired_nodes=nodes)


@st.composite
def metrics(draw: st.DrawFn) -> Metrics:
    rows = draw(st.lists(instances, max_size=3, unique=True))
    column = st.lists(numbers, min_size=len(rows), max_size=len(rows)).map(np.array)
    return Metrics(tuple(rows), {name: draw(column) for name in COLUMNS}, draw(column))


latencies = st.none() | st.builds(model.Latency, numbers, numbers, numbers, numbers, numbers)
traffic = st.builds(
    model.EdgeTraffic,
    names,
    names,
    names,
    st.tuples(st.integers(1, 3), st.integers(1, 3), numbers).map(lambda t: np.full(t[:2], t[2])),
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    nodes = draw(
        st.lists(
            st.builds(Node, names, positive, st.integers(1, 4), st.none() | st.integers(1, 9), st.none() | numbers),
            max_size=3,
            unique_by=lambda n: n.name,
        )
    )
    mine = draw(st.lists(topologies(), max_size=2, unique_by=lambda t: t.name))
    workers = tuple(model.Worker(model.Slot(n.name), f"e{i}", draw(st.integers(1, 9))) for i, n in enumerate(nodes))
    return Snapshot(
        draw(numbers),
        draw(positive),
        tuple(nodes),
        tuple(mine),
        workers,
        draw(placements),
        draw(metrics()),
        tuple(draw(st.lists(traffic, max_size=2))),
        tuple(draw(st.lists(st.builds(model.NodeMetrics, names, numbers, numbers), max_size=2))),
        tuple(
            draw(
                st.lists(
                    st.builds(model.TopologyMetrics, names, whole, numbers, numbers, numbers, latencies, latencies),
                    max_size=2,
                )
            )
        ),
        draw(whole),
        draw(st.booleans()),
    )


plans = st.builds(
    Plan,
    placements,
    st.lists(st.builds(model.Rescale, names, names, st.integers(1, 9)), max_size=2, unique_by=str).map(
        lambda rs: tuple({(r.topology, r.operator): r for r in rs}.values())
    ),
    st.dictionaries(instances, numbers, max_size=3),
    st.dictionaries(instances, numbers, max_size=3),
    st.lists(names, max_size=2).map(tuple),
    st.sampled_from(model.MigrationMode),
    st.none() | whole,
    st.lists(reasons, max_size=2).map(tuple),
)
forecasts = st.builds(
    model.Forecast,
    st.lists(
        st.builds(model.OperatorForecast, names, names, numbers, numbers, st.booleans(), st.none() | reasons),
        max_size=2,
    ).map(tuple),
)
demands = st.builds(
    model.Demand,
    st.lists(
        st.integers(1, 3).flatmap(
            lambda n: st.builds(
                model.OperatorDemand,
                names,
                names,
                st.just(n),
                st.tuples(*[numbers] * n),
                st.tuples(*[numbers] * n),
                whole,
                st.none() | reasons,
            )
        ),
        max_size=2,
    ).map(tuple),
    st.booleans(),
)
allotments = st.builds(
    model.Allotment,
    st.dictionaries(names, st.lists(names, max_size=2).map(tuple), max_size=2),
    st.lists(names, max_size=2).map(tuple),
    st.lists(names, max_size=2).map(tuple),
    st.lists(reasons, max_size=1).map(tuple),
)
outcomes = st.none() | st.builds(
    model.Outcome,
    st.lists(names, max_size=2).map(tuple),
    st.lists(
        st.builds(model.Refusal, names, st.sampled_from(model.RefusalCode), st.text(max_size=9), st.none() | slots),
        max_size=2,
    ).map(tuple),
    st.none() | numbers,
)
cycles = st.builds(model.Cycle, snapshots(), forecasts, demands, allotments, plans, outcomes)


@settings(max_examples=60, deadline=None)
@given(cycles)
def test_a_whole_cycle_is_read_back_the_same(cycle: model.Cycle) -> None:
    text = json.dumps(to_json(cycle), allow_nan=False)
    assert from_json(model.Cycle, json.loads(text)) == cycle


OTHERS: list[object] = [
    model.Move(model.Instance("t", "a", 1), None, model.Slot("n", 2)),
    model.Load.parse("ramp 0s=500 60s=2500"),
    model.Segment(0.0, 10.0, 5.0, 7.5),
    model.Schedule((model.Segment(0.0, 10.0, 5.0, 7.5),)),
    model.InstanceMetrics(arrived=3.0),
    Reason("x", ReasonCode.COOLDOWN, "because", {"n": 1.5}),
    model.Refusal("x", model.RefusalCode.WORKER_FULL, "because", model.Slot("n", 1)),
]


@pytest.mark.parametrize("value", OTHERS, ids=lambda v: type(v).__name__)
def test_the_other_values_are_read_back_the_same(value: object) -> None:
    assert from_json(type(value), json.loads(json.dumps(to_json(value)))) == value


def test_a_placement_is_a_list_of_places() -> None:
    placement = Placement({model.Instance("wc", "count", 3): model.Slot("n2", 1)})
    place = {"topology": "wc", "operator": "count", "index": 3, "node": "n2", "slot": 1}
    assert to_json(placement) == [place]
    assert from_json(Placement, [place]) == placement


WORKED: dict[str, Any] = {
    "at_s": 10,
    "cycle_s": 1.5,
    "nodes": [{"name": "n1", "cpu_pct": 100}],
    "topologies": [{"name": "t", "operators": [{"name": "a", "parallelism": 1}], "edges": []}],
    "placement": [{"topology": "t", "operator": "a", "index": 0, "node": "n1", "slot": 0}],
    "metrics": {"instances": ["t/a/0"], "columns": {"arrived": [5]}},
    "traffic": [{"topology": "t", "source": "a", "target": "a", "rows": [[1.0]]}],
}


def without(data: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in data.items() if k != key}


def at(path: str, value: object) -> dict[str, Any]:
    """The worked snapshot with one thing changed."""
    data = json.loads(json.dumps(WORKED))
    *way, last = path.split(".")
    here = data
    for step in way:
        here = here[int(step)] if step.isdecimal() else here[step]
    here[int(last) if last.isdecimal() else last] = value
    return data  # type: ignore[no-any-return]


BAD: dict[str, tuple[Any, str]] = {
    "unknown field": (at("nodes.0.cores", 4), "Snapshot.nodes[0] has no field 'cores'; it has name, cpu_pct"),
    "missing field": (without(WORKED, "cycle_s"), "Snapshot.cycle_s is missing"),
    "text for a number": (at("nodes.0.cpu_pct", "100"), "Snapshot.nodes[0].cpu_pct must be a number, not '100'"),
    "true for a number": (at("at_s", True), "Snapshot.at_s must be a number"),
    "NaN": (at("nodes.0.cpu_pct", float("nan")), "Snapshot.nodes[0].cpu_pct must be a number, not nan"),
    "infinite": (at("metrics.columns.arrived.0", float("inf")), "Snapshot.metrics.columns.arrived[0] must be a number"),
    "half an index": (at("placement.0.index", 0.5), "Snapshot.placement[0].index must be a whole number"),
    "no list": (at("nodes", {}), "Snapshot.nodes must be a list"),
    "no object": (at("nodes.0", "n1"), "Snapshot.nodes[0] must be an object"),
    "no such grouping": (
        at("topologies.0.edges", [{"source": "a", "target": "a", "grouping": "local"}]),
        "Snapshot.topologies[0].edges[0].grouping must be one of shuffle, fields",
    ),
    "a value's own check": (at("nodes.0.slots", 0), "Snapshot.nodes[0]: node n1: slots must be a whole number"),
    "unknown column": (at("metrics.columns.speed", [1]), "Snapshot.metrics: metrics: unknown column 'speed'"),
    "no such instance": (at("metrics.instances.0", "t-a-0"), "Snapshot.metrics.instances[0]: 't-a-0' names no"),
    "placed twice": (at("placement", WORKED["placement"] * 2), "Snapshot.placement[1] places t/a/0 twice"),
    "place without slot": (
        at("placement.0", without(WORKED["placement"][0], "slot")),
        "Snapshot.placement[0].slot is missing",
    ),
    "no matrix": (at("traffic.0.rows", [[1.0], [1.0, 2.0]]), "Snapshot.traffic[0].rows must be a matrix"),
    "null": (at("at_s", None), "Snapshot.at_s must be a number, not None"),
}


def test_the_worked_snapshot_is_read() -> None:
    assert from_json(Snapshot, WORKED).metrics.of_operator("t", "a").arrived == 5


@pytest.mark.parametrize("case", BAD)
def test_what_is_not_exactly_right_is_refused_by_path(case: str) -> None:
    data, words = BAD[case]
    with pytest.raises(BadInput) as error:
        from_json(Snapshot, data)
    assert str(error.value).startswith(words)


REASON = {"about": "t", "code": "cooldown", "why": "because", "numbers": {}}
BAD_CODES: dict[str, tuple[dict[str, object], str]] = {
    "unknown": ({**REASON, "code": "because"}, "Reason.code must be a ReasonCode, not 'because'"),
    "a name, not a value": ({**REASON, "code": "COOLDOWN"}, "Reason.code must be a ReasonCode, not 'COOLDOWN'"),
    "no text": ({**REASON, "code": 1}, "Reason.code must be a ReasonCode, not 1"),
    "null": ({**REASON, "code": None}, "Reason.code must be a ReasonCode, not None"),
    "missing": (without(REASON, "code"), "Reason.code is missing"),
}


def test_a_code_is_written_as_its_value() -> None:
    reason = Reason("t", ReasonCode.COOLDOWN, "because")
    assert to_json(reason) == REASON
    assert from_json(Reason, REASON).code is ReasonCode.COOLDOWN


@pytest.mark.parametrize("case", BAD_CODES)
def test_a_code_that_is_not_known_is_refused(case: str) -> None:
    data, words = BAD_CODES[case]
    with pytest.raises(BadInput) as error:
        from_json(Reason, data)
    assert str(error.value) == words


def test_what_is_no_number_is_not_written_either() -> None:
    with pytest.raises(BadInput, match=r"Latency\.p50"):
        to_json(model.Latency(1.0, float("nan"), 1.0, 1.0, 1.0))


def test_a_trace_is_a_file_of_its_sender() -> None:
    with pytest.raises(BadInput, match="write its points as steps"):
        from_json(model.Load, "trace passwords.csv")


def test_metrics_from_before_ages_were_recorded_have_age_0() -> None:
    data = {"instances": ["t/o/0"], "columns": {"executed": [5.0]}}
    assert from_json(Metrics, data).age_s.tolist() == [0.0]
    with pytest.raises(BadInput, match="Metrics: metrics: age_s has an undefined value"):
        from_json(Metrics, {**data, "age_s": [-1.0]})


def test_edges_and_topologies_keep_their_ages_and_have_age_0_without_one() -> None:
    edge = model.EdgeTraffic("t", "s", "k", np.ones((1, 2)), age_s=4.5)
    told = model.TopologyMetrics("t", age_s=4.5)
    assert edge != replace(edge, age_s=0.0)
    for value in (edge, told):
        data = to_json(value)
        assert data["age_s"] == 4.5
        assert from_json(type(value), data) == value
        del data["age_s"]
        assert from_json(type(value), data) == replace(value, age_s=0.0)
    with pytest.raises(BadInput, match="s->k: age_s must be a number of at least 0, not -1"):
        from_json(model.EdgeTraffic, {**to_json(edge), "age_s": -1.0})
