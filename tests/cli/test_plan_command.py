"""barograph plan: what it prints, its round trip, and one clear sentence for invalid input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barograph.cli.main import main
from barograph.cli.support.tables import SHOWN, WIDTH, notes_block
from barograph.model import Placement
from barograph.policy.registry import POLICIES
from barograph.recordings import read
from barograph.recordings.validate import Rules, violations
from tests.recordings.odd import NOTES, odd_cluster

KEYS = [
    "seconds", "peak_memory_mb", "nodes_used", "workers_used", "inter_node_traffic", "inter_worker_traffic",
    "largest_node_load", "overcommitted_nodes", "unplaced", "notes", "placement",
]  # fmt: skip


def cluster() -> dict[str, Any]:
    return {
        "clusters": {
            "c": {
                "nodes": [{"id": "x", "slots": 2, "mem_mb": 2000, "cpu": 200}, {"count": 2, "slots": 2, "cpu": 200}],
                "topologies": [
                    {
                        "name": "t",
                        "workers": 2,
                        "components": [
                            {"name": "s", "source": True, "parallelism": 2, "cpu": 50, "mem_mb": 100, "inputs": []},
                            {
                                "name": "a",
                                "parallelism": 3,
                                "cpu": 40,
                                "mem_mb": 100,
                                "inputs": [{"from": "s", "grouping": "fields", "rows_per_s": 30}],
                            },
                        ],
                    }
                ],
            }
        }
    }


def plan(folder: Path, content: dict[str, Any], *more: str) -> int:
    file = folder / "mine.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return main(["plan", "--cluster", str(file), "--name", "c", "--format", "json", *more])


@pytest.mark.parametrize(
    "policy", ["adaptive", "thrifty", "few-disturbed", "r-storm", "t-storm", "even", "offline", "online", "isolation"]
)
def test_every_placing_policy_keeps_its_own_rules(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(tmp_path, cluster(), "--policy", policy, "--validate") == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report) == [*KEYS, "valid", "violations"]
    assert report["valid"]
    assert len(report["placement"]) + len(report["unplaced"]) == 5
    assert {"topology", "operator", "index", "node", "slot"} == set(report["placement"][0])


def test_a_plan_is_the_start_of_the_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "saved.json"
    assert plan(tmp_path, cluster(), "--save", str(saved)) == 0
    first = json.loads(capsys.readouterr().out)["placement"]
    content = json.loads(saved.read_text())
    assert plan(tmp_path, content) == 0
    assert json.loads(capsys.readouterr().out)["placement"] == first
    gone = first[0]["node"]
    nodes = content["clusters"]["c"]["nodes"]
    content["clusters"]["c"]["nodes"] = [n for n in nodes if n["id"] != gone]
    assert plan(tmp_path, content, "--validate") == 0
    report = json.loads(capsys.readouterr().out)
    kept = [row for row in first if row["node"] != gone]
    assert kept
    assert [row for row in kept if row not in report["placement"]] == []
    assert len(report["placement"]) == 5
    assert any("on nodes that are gone" in note for note in report["notes"])


def test_a_shipped_recording_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--name", "largeCluster03", "--policy", "even", "--rates", "synthetic"]) == 0
    out = capsys.readouterr().out
    assert "nodes_used            80" in out
    assert "placed                1221" in out


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("rates", ["file", "synthetic"])
def test_every_policy_plans_a_recording_with_all_oddities(
    policy: str, rates: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(tmp_path, odd_cluster(), "--policy", policy, "--rates", rates, "--validate") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["valid"]
    assert len(report["placement"]) + len(report["unplaced"]) == 10
    assert {row["topology"] for row in [*report["placement"], *report["unplaced"]]} == {"odd"}
    expected = {note.format(file=tmp_path / "mine.json") for note in NOTES.values()}
    no_rates = "the file has no rates, so traffic counts as 0; --rates synthetic makes some up"
    assert set(report["notes"]) == expected | ({no_rates} if rates == "file" else set())


def test_a_plan_of_an_odd_recording_is_the_start_of_the_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "saved.json"
    assert plan(tmp_path, odd_cluster(), "--save", str(saved)) == 0
    first = json.loads(capsys.readouterr().out)
    assert plan(tmp_path, json.loads(saved.read_text())) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["placement"] == first["placement"]
    assert NOTES["no components"] in again["notes"]


def test_notes_are_a_short_block_of_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "odd.json"
    file.write_text(json.dumps(odd_cluster()), encoding="utf-8")
    assert main(["plan", "--cluster", str(file), "--name", "c", "--policy", "even", "--rates", "synthetic"]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("notes")
    assert start > next(i for i, line in enumerate(lines) if line.startswith("unplaced"))
    assert f"  {NOTES['no components']}" in lines[start:]
    assert len(lines) == start + 1 + SHOWN + 1
    assert lines[-1] == f"  and {len(NOTES) - SHOWN} more; --format json has them all"


def test_a_block_of_notes() -> None:
    assert notes_block([]) == []
    assert notes_block(["one"]) == ["notes", "  one"]
    assert notes_block(["a"] * SHOWN) == ["notes", *["  a"] * SHOWN]
    (_, long) = notes_block(["word " * 100])
    assert long.endswith(" ...")
    assert len(long) <= WIDTH + 2


def test_the_check_sees_what_is_broken(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(cluster()), encoding="utf-8")
    recording = read(file, "c")
    from barograph.model import Instance, Slot

    crowd = Placement({i: Slot("x") for i in recording.topologies[0].instances()})
    found = violations(recording, crowd, [], Rules(cpu=True, alpha=0.0))
    assert "node x holds 220 % CPU of 200 %" in found
    assert "a worker of t holds 5 instances, above M = 3" in found
    assert "t runs on 1 workers instead of 2" in found
    lost = Placement({Instance("t", "s", 0): Slot("x", 7)})
    found = violations(recording, lost, [], Rules(whole=True))
    assert "t/s/0 is in x/7, which does not exist" in found
    assert "t is placed in part: 1 of 5" in found
    assert "t/a/0 has neither a place nor a reason" in found


Spoil = Callable[[dict[str, Any]], object]


def _c(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content["clusters"]["c"]
    return found


def _t(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = _c(content)["topologies"][0]
    return found


BAD: dict[str, tuple[Spoil, str]] = {
    "cyclic graph": (
        lambda c: _t(c)["components"][0]["inputs"].append({"from": "a", "grouping": "shuffle"}),
        "topology t has a cycle through s, a",
    ),
    "unknown operator in an edge": (
        lambda c: _t(c)["components"][1]["inputs"][0].update({"from": "missing"}),
        "unknown operator 'missing'",
    ),
    "unknown grouping": (
        lambda c: _t(c)["components"][1]["inputs"][0].update({"grouping": "none"}),
        "unknown grouping 'none'",
    ),
    "negative rate": (
        lambda c: _t(c)["components"][1]["inputs"][0].update({"rows_per_s": -1}),
        "rows_per_s must be a number of at least 0, not -1",
    ),
    "NaN": (
        lambda c: _t(c)["components"][1].update({"cpu": float("nan")}),
        "cpu must be a number of at least 0, not nan",
    ),
    "duplicate operators": (lambda c: _t(c)["components"][1].update({"name": "s"}), "components names 's' twice"),
    "duplicate nodes": (lambda c: _c(c)["nodes"].append(_c(c)["nodes"][0]), "nodes names 'x' twice"),
    "duplicate topologies": (lambda c: _c(c)["topologies"].append(_t(c)), "topologies names 't' twice"),
    "empty cluster": (lambda c: _c(c).update({"nodes": []}), "cluster c has no nodes"),
    "nothing to place": (lambda c: _c(c).update({"topologies": []}), "cluster c has no topologies"),
    "zero slots": (
        lambda c: _c(c)["nodes"][0].update({"slots": 0}),
        "slots must be a whole number of at least 1, not 0",
    ),
    "minimum above desired": (
        lambda c: _t(c).update({"minimum_nodes": 3, "desired_nodes": 2}),
        "minimum_nodes 3 is above desired_nodes 2",
    ),
    "level 0": (lambda c: _t(c).update({"level": 0}), "topology t: level must be a whole number of at least 1, not 0"),
    "no instances": (lambda c: _t(c)["components"][0].update({"parallelism": 0}), "parallelism must be a whole number"),
    "more than a core": (lambda c: _t(c)["components"][0].update({"cpu": 150}), "one instance can use at most 100 %"),
    "unknown key": (lambda c: _c(c)["nodes"][0].update({"cores": 2}), "has the unknown key 'cores'"),
    "unknown instance placed": (
        lambda c: _c(c).update({"placement": [{"topology": "t", "operator": "a", "index": 9, "node": "x", "slot": 0}]}),
        "names the unknown instance t/a/9",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, sentence = BAD[case]
    content = cluster()
    spoil(content)
    assert plan(tmp_path, content) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--name", "nowhere"], "has no cluster 'nowhere'; it has 'largeCluster01', 'largeCluster03"),
        (["--name", "largeCluster03", "--policy", "best"], "there is no policy 'best'"),
        (["--name", "largeCluster03", "--seed", "-1"], "--seed must be a whole number"),
        (["--name", "c", "--cluster", "missing.json"], "missing.json cannot be read"),
    ],
)
def test_bad_arguments(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *arguments]) == 2
    assert sentence in capsys.readouterr().err
