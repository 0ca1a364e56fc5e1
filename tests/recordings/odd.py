"""A recorded cluster with every oddity that is a note and no refusal."""

from typing import Any


def component(name: str, parallelism: int, *inputs: tuple[str, str], **more: object) -> dict[str, Any]:
    into = [{"from": source, "grouping": grouping} for source, grouping in inputs]
    row = {"name": name, "source": not inputs, "parallelism": parallelism, "cpu": 10, "mem_mb": 100, "inputs": into}
    return {**row, **more}


def odd_cluster() -> dict[str, Any]:
    """Topologies: odd runs (10 instances of 7 operators), the other three cannot run."""
    odd = [
        component("s", 2),
        component("near", 2, ("s", "local_or_shuffle")),
        component("part", 2, ("s", "partial_key")),
        component("own", 1, ("near", "com.acme.ByRegion"), ("ghost", "shuffle")),
        component("unsaid", 1, ("part", "shuffle"), ("own", "none"), vendor="acme"),
        component("loop", 1, ("unsaid", "shuffle"), ("loop", "shuffle"), cpu=150),
        component("idle", 0, ("loop", "shuffle")),
        component("last", 1, ("loop", "shuffle"), ("loop", "shuffle"), mem_mb=300),
    ]
    odd[5]["inputs"].append({"from": "own"})
    topologies = [
        {"name": "odd", "priority": 1, "max_heap_mb": 200, "components": odd},
        {"name": "bare", "components": []},
        {"name": "barer"},
        {"name": "asleep", "components": [component("s", 0)]},
    ]
    placement = [
        {"topology": "odd", "operator": "s", "index": 0, "node": "n0000", "slot": 0},
        {"topology": "odd", "operator": "s", "index": 1, "node": "lost", "slot": 0},
        {"topology": "bare", "operator": "s", "index": 0, "node": "n0001", "slot": 0},
        {"topology": "odd", "operator": "idle", "index": 0, "node": "n0001", "slot": 0},
    ]
    nodes = [{"count": 3, "rack": "r0", "slots": 4, "mem_mb": 4000, "cpu": 400}]
    cluster = {"nodes": nodes, "topologies": topologies, "placement": placement}
    return {"origin": "a cluster that ran", "version": 3, "clusters": {"c": cluster}}


# what is odd -> the note that says how it is treated
NOTES = {
    "priorities": "the recorded priorities (1) order the topologies; they are not Barograph's level",
    "no components": "topologies without components are skipped: bare, barer",
    "no instance": "topologies in which no operator has an instance are skipped: asleep",
    "local_or_shuffle": "odd: the grouping local_or_shuffle has no Spark form and counts as shuffle: s->near",
    "partial_key": "odd: the grouping partial_key has no Spark form and counts as fields: s->part",
    "custom": "odd: the custom grouping 'com.acme.ByRegion' has no Spark form and counts as shuffle: near->own",
    "none": "odd: grouping none read as shuffle: own->unsaid",
    "no grouping": "odd: a grouping that is not given counts as shuffle: own->loop",
    "unknown source": "odd: inputs from operators that the topology does not have are left out: ghost->own",
    "several streams": "odd: an edge recorded several times is one edge of as many streams: loop->last x 2",
    "0 instances": "odd: 1 operators of 0 instances dropped: idle",
    "more than a core": "odd: instances ask for more than one core: loop 150 %",
    "heap": "odd: an instance of last needs 300.0 MB and max_heap_mb is 200.0, so the limit counts as 300.0 MB",
    "loop": "odd: feedback edges count as traffic but not in the order: loop->loop",
    "gone": "1 instances were on nodes that are gone: lost",
    "strays": "the placement of instances that do not run is ignored: bare/s/0, odd/idle/0",
    "top key": "the unknown key 'version' is ignored: {file}",
    "key": "the unknown key 'vendor' is ignored: topology odd: component 4",
}
