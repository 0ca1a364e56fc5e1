"""Recordings are read leniently and say so; what users write is read strictly."""

import json
from pathlib import Path

import numpy as np
import pytest

from barograph.model import Grouping
from barograph.recordings import Recording, demand_of, read, snapshot_of
from barograph.recordings.world import dealt, zipf

NODE = {"count": 2, "rack": "r0", "slots": 4, "mem_mb": 1000, "cpu": 400}


def component(name: str, count: int = 1, *inputs: tuple[str, str], **more: object) -> dict[str, object]:
    into = [{"from": source, "grouping": grouping} for source, grouping in inputs]
    return {"name": name, "source": not inputs, "parallelism": count, "cpu": 10, "mem_mb": 100, "inputs": into, **more}


def topology(*components: dict[str, object], **more: object) -> dict[str, object]:
    return {"name": "t", "priority": 5, "max_heap_mb": 150, "components": list(components), **more}


def written(folder: Path, *topologies: dict[str, object], origin: str = "", **more: object) -> Path:
    content: dict[str, object] = {"clusters": {"c": {"nodes": [NODE], "topologies": list(topologies), **more}}}
    if origin:
        content["origin"] = origin
    file = folder / "clusters.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def recorded(folder: Path, *topologies: dict[str, object], **more: object) -> Recording:
    return read(written(folder, *topologies, origin="somewhere", **more), "c")


def test_the_shipped_recordings() -> None:
    large = read(None, "largeCluster01")
    assert len(large.nodes) == 1312
    assert sum(o.parallelism for t in large.topologies for o in t.operators) == 24_349
    assert [t.name for t in large.topologies[:3]] == ["T026", "T039", "T023"]  # by priority, then size
    small = read(None, "largeCluster03")
    assert (len(small.nodes), len(small.topologies)) == (80, 50)


def test_each_liberty_is_a_note(tmp_path: Path) -> None:
    found = recorded(
        tmp_path,
        topology(
            component("s"),
            component("idle", 0),
            component("a", 2, ("s", "none"), ("idle", "shuffle"), ("a", "fields"), ("b", "shuffle")),
            component("b", 1, ("a", "shuffle"), ("a", "shuffle"), cpu=250),
        ),
    )
    text = "\n".join(found.notes)
    for part in (
        "priorities (5) order the topologies; they are not Barograph's level",
        "operators of 0 instances dropped: idle",
        "grouping none read as shuffle: s->a",
        "more than one core: b 250 %",
        "feedback edges count as traffic but not in the order: a->a, b->a",
        "one edge of as many streams: a->b x 2",
    ):
        assert part in text
    only = found.topologies[0]
    assert [o.name for o in only.order] == ["s", "a", "b"]
    assert (only.level, only.workers) == (2, 3)  # 400 MB by heaps of 150
    assert only.operator("a").stateful
    assert not only.operator("b").stateful


def test_names_and_racks_of_nodes(tmp_path: Path) -> None:
    assert [n.name for n in recorded(tmp_path, topology(component("s"))).nodes] == ["n0000", "n0001"]


def test_a_node_that_is_gone_took_its_instances_along(tmp_path: Path) -> None:
    place = [
        {"topology": "t", "operator": "s", "index": 0, "node": "n0001", "slot": 3},
        {"topology": "t", "operator": "s", "index": 1, "node": "lost", "slot": 0},
    ]
    found = recorded(tmp_path, topology(component("s", 2)), placement=place)
    assert [str(i) for i in found.placed] == ["t/s/0"]
    assert found.notes[-1] == "1 instances were on nodes that are gone: lost"


def test_synthetic_rates(tmp_path: Path) -> None:
    found = recorded(
        tmp_path,
        topology(
            component("s", 2),
            component("a", 4, ("s", "shuffle")),
            component("k", 3, ("a", "fields")),
            component("e", 2, ("k", "all")),
            component("g", 2, ("e", "global")),
            component("d", 3, ("e", "direct")),
        ),
    )
    rows = {(t.source, t.target): t.rows for t in snapshot_of(found, synthetic=True, seed=3).traffic}
    assert np.allclose(rows["s", "a"], 25.0)
    assert np.allclose(sorted(rows["a", "k"].sum(axis=0)), 200 * np.array([1 / 3, 1 / 2, 1]) / (11 / 6))
    assert rows["k", "e"].sum() == pytest.approx(400)  # each copy goes to both
    assert np.allclose(rows["e", "g"][:, 1], 0)
    assert [np.flatnonzero(row).tolist() for row in rows["e", "d"]] == [[0], [1]]
    again = snapshot_of(found, synthetic=True, seed=3).traffic
    assert all(np.array_equal(t.rows, rows[t.source, t.target]) for t in again)
    assert demand_of(found).operators[0].shares_pct == (10.0, 10.0)


def test_even_edges_stay_views() -> None:
    rows = dealt(Grouping.SHUFFLE, np.full(1000, 100.0), 2000, np.random.default_rng(0))
    assert rows.strides == (0, 0)
    assert zipf(4, np.random.default_rng(0)).sum() == pytest.approx(1)


def test_rates_may_be_written(tmp_path: Path) -> None:
    into = {"inputs": [{"from": "s", "grouping": "shuffle", "rows_per_s": 120}]}
    file = written(tmp_path, topology(component("s", 2), component("a", 3, **into)))
    (edge,) = snapshot_of(read(file, "c")).traffic
    assert np.allclose(edge.rows, 20.0)


def test_what_a_user_writes_keeps_its_order(tmp_path: Path) -> None:
    small, large = topology(component("s")), topology(component("s", 9))
    file = written(tmp_path, {**small, "name": "small", "level": 3}, {**large, "name": "large", "level": 1})
    assert [t.name for t in read(file, "c").topologies] == ["small", "large"]
