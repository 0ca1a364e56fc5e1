"""Oddities of a recording become notes; what makes no sense is refused, also in a recording."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barograph.model import BadInput, Grouping
from barograph.recordings import Recording, names, read
from barograph.recordings.notes import Notes, some
from tests.recordings.odd import NOTES, odd_cluster


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "clusters.json"
    path.write_text(json.dumps(odd_cluster()), encoding="utf-8")
    return path


@pytest.mark.parametrize("oddity", NOTES)
def test_each_oddity_has_its_note(oddity: str, file: Path) -> None:
    assert NOTES[oddity].format(file=file) in read(file, "c").notes


def test_a_refusal_is_one_sentence_whatever_clusters_are_called(tmp_path: Path) -> None:
    path = tmp_path / "clusters.json"
    path.write_text(json.dumps({"clusters": {"\n0": odd_cluster()["clusters"]["c"]}}), encoding="utf-8")
    with pytest.raises(BadInput, match=r"has no cluster 'c'; it has '\\n0'"):
        read(path, "c")


def test_there_are_no_other_notes(file: Path) -> None:
    assert sorted(read(file, "c").notes) == sorted(note.format(file=file) for note in NOTES.values())


def test_how_oddities_are_treated(file: Path) -> None:
    (only,) = read(file, "c").topologies
    edges = {(e.source, e.target): e.grouping for e in only.edges}
    assert edges["s", "near"] is Grouping.SHUFFLE
    assert edges["s", "part"] is Grouping.FIELDS
    assert edges["near", "own"] is Grouping.SHUFFLE
    assert not any(e.source == "ghost" for e in only.edges)
    assert only.operator("part").stateful  # as whatever is fed by key
    assert not only.operator("near").stateful
    assert only.max_heap_mb == 300
    assert [str(i) for i in read(file, "c").placed] == ["odd/s/0"]


SPELT = {
    "localOrShuffle": (Grouping.SHUFFLE, "local_or_shuffle"),
    "PARTIAL-KEY": (Grouping.FIELDS, "partial_key"),
    "Fields": (Grouping.FIELDS, ""),
    "by region, then by day": (Grouping.SHUFFLE, "custom grouping 'by region, then by day'"),
}


@pytest.mark.parametrize("spelling", SPELT)
def test_other_spellings(spelling: str, tmp_path: Path) -> None:
    grouping, named = SPELT[spelling]
    content = odd_cluster()
    content["clusters"]["c"]["topologies"][0]["components"][1]["inputs"][0]["grouping"] = spelling
    path = tmp_path / "clusters.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    found = read(path, "c")
    edge = next(e for e in found.topologies[0].edges if e.target == "near")
    assert edge.grouping is grouping
    about = [note for note in found.notes if "s->near" in note]
    assert [named in note for note in about] == ([True] if named else [])


def _odd(content: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = content["clusters"]["c"]["topologies"][0]["components"]
    return found


SENSELESS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "negative parallelism": (
        lambda c: _odd(c)[0].update(parallelism=-1),
        "topology odd: operator s: parallelism must be a whole number of at least 0, not -1",
    ),
    "negative rate": (
        lambda c: _odd(c)[1]["inputs"][0].update(rows_per_s=-1),
        "topology odd: operator near: input 0: rows_per_s must be a number of at least 0, not -1",
    ),
    "components that are no list": (
        lambda c: c["clusters"]["c"]["topologies"][1].update(components="none"),
        "topology bare: components must be a list, not 'none'",
    ),
    "a grouping that is no text": (
        lambda c: _odd(c)[1]["inputs"][0].update(grouping=7),
        "topology odd: operator near: input 0: grouping must be a text, not 7",
    ),
    "one name twice": (lambda c: _odd(c)[1].update(name="s"), "topology odd: components names 's' twice"),
    "a skipped topology's name twice": (
        lambda c: c["clusters"]["c"]["topologies"][2].update(name="bare"),
        "cluster c: topologies names 'bare' twice",
    ),
    "nothing that runs": (
        lambda c: c["clusters"]["c"]["topologies"].pop(0),
        "cluster c has no topology with an operator that runs",
    ),
    "a billion nodes": (
        lambda c: c["clusters"]["c"]["nodes"][0].update(count=10**9),
        "cluster c: the number of nodes must be at most 10,000, not 1,000,000,000",
    ),
    "a billion slots": (
        lambda c: c["clusters"]["c"]["nodes"][0].update(slots=10**9),
        "cluster c: the number of slots must be at most 500,000, not 3,000,000,000",
    ),
    "a hundred million instances": (
        lambda c: _odd(c)[0].update(parallelism=10**8),
        "cluster c: the number of instances must be at most 100,000, not 100,000,008",
    ),
    "a number of thousands of digits": (lambda c: _odd(c)[0].update(cpu=10**4000), "a whole number is beyond 64 bits"),
}


@pytest.mark.parametrize("case", SENSELESS)
def test_what_has_no_sense_is_refused(case: str, tmp_path: Path) -> None:
    spoil, sentence = SENSELESS[case]
    content = odd_cluster()
    spoil(content)
    path = tmp_path / "clusters.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BadInput) as refused:
        read(path, "c")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


HARD = {
    "deep": "[" * 100_000,
    "deeper than any cluster": '{"clusters": ' + "[" * 500 + "]" * 500 + "}",
    "long number": "1" * 5000,
}


@pytest.mark.parametrize("case", HARD)
def test_text_that_is_hard_to_parse_is_refused(case: str, tmp_path: Path) -> None:
    path = tmp_path / "clusters.json"
    path.write_text(HARD[case], encoding="utf-8")
    with pytest.raises(BadInput, match=r"clusters\.json"):
        read(path, "c")


def test_a_file_of_the_users_own_stays_strict(tmp_path: Path) -> None:
    content = odd_cluster()
    del content["origin"], content["version"]
    path = tmp_path / "clusters.json"
    for name in ("local_or_shuffle", "partial_key"):
        content["clusters"]["c"]["topologies"] = [{"name": "t", "components": _two(name)}]
        path.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(BadInput, match=f"operator a: input 0: grouping '{name}' has no Spark form; there are shu"):
            read(path, "c")
    content["clusters"]["c"]["topologies"] = [{"name": "t", "components": []}]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BadInput, match="topology t has no components"):
        read(path, "c")


def _two(grouping: str) -> list[dict[str, Any]]:
    return [
        {"name": "s", "source": True, "parallelism": 1},
        {"name": "a", "parallelism": 1, "inputs": [{"from": "s", "grouping": grouping}]},
    ]


def test_a_long_list_of_places_is_cut() -> None:
    assert some(["a", "b"]) == "a, b"
    assert some(list("abcdefgh")) == "a, b, c, d, e and 3 more"
    notes = Notes(lenient=True)
    for k in range(7):
        notes.ignore("colour", f"node {k}")
    assert notes.sentences() == (
        "the unknown key 'colour' is ignored: node 0, node 1, node 2, node 3, node 4 and 2 more",
    )


def test_the_names_of_a_file(file: Path) -> None:
    assert names(file) == ("c",)


def _shape(recording: Recording) -> str:
    """All that is read from a file but the notes, as a hash."""
    rows = [[n.name, n.cpu_pct, n.slots, n.memory_mb, n.rack] for n in recording.nodes]
    for t in recording.topologies:
        rows.append([t.name, t.level, t.workers, t.max_heap_mb])
        rows += [[o.name, o.parallelism, o.source, o.stateful, o.cpu_pct, o.memory_mb] for o in t.operators]
        rows += [[e.source, e.target, e.grouping.value, e.feedback] for e in t.edges]
    rows += [[*edge[:3], edge[3].value, count] for edge, count in recording.streams.items()]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


# as they were read before recordings were read leniently in full
SHIPPED = {
    "largeCluster01": ("08239c4aa40814d5", 29, "86e580b7614bcf1f"),
    "largeCluster03": ("2b3e29fcf1901758", 57, "02a363c1be23a48c"),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_changed_for_the_shipped_clusters(name: str) -> None:
    found = read(None, name)
    notes = hashlib.sha256("\n".join(found.notes).encode()).hexdigest()[:16]
    assert (_shape(found), len(found.notes), notes) == SHIPPED[name]
