"""``barograph sim`` prints the results of a run, and refuses invalid input in one line."""

import json
from pathlib import Path

import pytest

from barograph.cli.main import main
from tests.recordings.odd import NOTES, odd_cluster

SHORT = """
name = "short"
title = "a short run"
duration_s = 40
nodes = [{name = "n", count = 2, cpu_pct = 200, slots = 2, memory_mb = 8192}]
[[topologies]]
name = "t"
operators = [
  {name = "s", parallelism = 2, load = "ramp 0s=50 40s=300", cost_ms = 0.5, cpu_pct = 20, memory_mb = 64},
  {name = "k", parallelism = 2, cost_ms = 3, cpu_pct = 60, memory_mb = 64},
]
edges = [{source = "s", target = "k"}]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "short.toml"
    path.write_text(SHORT)
    return str(path)


def test_the_policy_and_its_options_may_stand_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("barograph.toml").write_text('policy = "liu"\noptions = ["theta_pc=10"]\n', encoding="utf-8")
    assert main(["sim", "debs-2013"]) == 2
    assert "barograph.toml:2: options must be options of policy liu" in (said := capsys.readouterr().err)
    assert said.endswith('write options = ["theta_pct=10"]\n')
    assert main(["replay", "nowhere", "--policy", "lui"]) == 2
    assert "write --policy liu" in capsys.readouterr().err
    assert main(["plan", "--name", "largeCluster03", "--policy", "addaptive", "--config", "/dev/null"]) == 2
    assert "write --policy adaptive" in capsys.readouterr().err


@pytest.mark.parametrize("policy", ["none", "adaptive", "liu", "fixed-equal"])
def test_json_has_every_number(scenario: str, policy: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    code = main(["sim", scenario, "--policy", policy, "--seed", "2", "--format", "json", "--trace", str(trace)])
    assert code == 0
    report = json.loads(capsys.readouterr().out)
    assert report["policy"] == policy
    assert report["completed_rows"] > 6000
    assert report["lost_rows"] == 0
    assert report["calibrated"] is True
    assert report["decisions"] == 5
    assert set(report["complete_time_ms"]) == {"mean", "p50", "p99", "max"}
    assert report["cpu_used_s"] <= report["cpu_limit_s"]
    lines = trace.read_text().splitlines()
    assert [json.loads(line)["at_s"] for line in lines][:2] == [0.0, 10.0]


def test_the_table_says_where_it_is_uncalibrated(
    scenario: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["sim", scenario, "--policy", "even"]) == 0
    out = capsys.readouterr().out
    assert "uncalibrated" not in out
    assert "lost rows          0" in out
    assert "below stable       by 20 %: 0 s  by 40 %: 0 s" in out
    guesses = tmp_path / "guesses.json"
    guesses.write_text('{"machine": "none"}')
    assert main(["sim", scenario, "--policy", "even", "--calibration", str(guesses)]) == 0
    assert "uncalibrated" in capsys.readouterr().out


def test_a_run_with_a_trigger_shows_what_changes_of_level_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "watched.toml"
    file.write_text(SHORT.replace('name = "t"', 'name = "t"\ntrigger = {above_rows_s = 200}'))
    assert main(["sim", str(file), "--policy", "dps"]) == 0
    shown = capsys.readouterr().out
    assert "T_T, s             level 1 " in shown and "O, s               1 changes, mean " in shown
    assert "T_E" not in shown, "no batch is an event"


def test_the_list_names_what_ships(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--list"]) == 0
    out = capsys.readouterr().out
    assert "wordcount-regular" in out
    assert "migration/warm-cut-m16" in out


def test_notes_of_a_recorded_cluster_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "clusters.json"
    file.write_text(json.dumps(odd_cluster()), encoding="utf-8")
    assert main(["sim", f"{file}/c", "--policy", "even", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert sorted(report["notes"]) == sorted(note.format(file=file) for note in NOTES.values())
    assert report["lost_rows"] == 0
    assert [t["name"] for t in report["topologies"]] == ["odd"]
    assert main(["sim", str(file), "--policy", "even"]) == 0
    out = capsys.readouterr().out
    assert f"\nnotes\n  {NOTES['priorities']}\n" in out
    assert f"\n  {NOTES['no components']}\n" in out


def test_a_scenario_without_notes(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", scenario, "--policy", "none"]) == 0
    assert "notes" not in capsys.readouterr().out
    assert main(["sim", scenario, "--policy", "none", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


def test_a_file_of_several_clusters_asks_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = odd_cluster()
    content["clusters"]["d"] = content["clusters"]["c"]
    file = tmp_path / "clusters.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    assert main(["sim", str(file)]) == 2
    assert f"{file} has 2 clusters; name one: {file}/c, {file}/d\n" in capsys.readouterr().err


def test_more_rows_than_one_by_one_can_be_computed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "much.toml"
    path.write_text(SHORT.replace("40s=300", "40s=1e9"))
    assert main(["sim", str(path), "--policy", "none"]) == 2
    assert "short: the run has 4e+10 rows; grain rows takes at most 200,000,000, and" in capsys.readouterr().err
    assert main(["sim", str(path), "--policy", "none", "--grain", "flows"]) == 0


WRONG = {
    "no such scenario": (["nowhere"], "there is no scenario 'nowhere'"),
    "no such file": (["nowhere.toml"], "the scenario 'nowhere.toml' cannot be read"),
    "no scenario": ([], "name a SCENARIO"),
    "no such policy": (["debs-2013", "--policy", "luck"], "there is no policy 'luck'"),
    "no such option": (["debs-2013", "--option", "luck=3"], "has no option 'luck'"),
    "bad seed": (["debs-2013", "--seed", "-1"], "--seed must be a whole number"),
    "bad grain": (["debs-2013", "--grain", "sand"], "--grain must be rows or flows"),
    "bad format": (["debs-2013", "--format", "xml"], "--format must be json or table"),
    "no such file of clusters": (["nowhere.json"], "nowhere.json cannot be read"),
    "no such cluster of a file": (["nowhere.json/c"], "nowhere.json cannot be read"),
    "no such recording": (["recording:nowhere"], "has no cluster 'nowhere'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_nonsense_is_refused_in_one_line(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, sentence = WRONG[case]
    assert main(["sim", *arguments]) == 2
    shown = capsys.readouterr()
    assert sentence in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


# what of the scenario above is replaced, by what, and what the sentence names
SPOILT = {
    "cyclic graph": (
        'edges = [{source = "s", target = "k"}]',
        'edges = [{source = "s", target = "k"}, {source = "k", target = "k"}]',
        "topology t has a cycle through k",
    ),
    "unknown operator in an edge": ('target = "k"', 'target = "missing"', "unknown operator 'missing'"),
    "negative rate": ("0s=50", "0s=-50", "'-50' is not a rate"),
    "NaN rate": ("0s=50", "0s=nan", "'nan' is not a rate"),
    "negative cost": ("cost_ms = 3", "cost_ms = -3", "cost_ms must be a number of at least 0, not -3"),
    "NaN cost": ("cost_ms = 3", "cost_ms = nan", "cost_ms must be a number of at least 0, not nan"),
    "NaN duration": ("duration_s = 40", "duration_s = nan", "duration_s must be a number of at least 0, not nan"),
    "duplicate operators": ('name = "k"', 'name = "s"', "names 's' twice"),
    "duplicate nodes": (
        "memory_mb = 8192}]",
        'memory_mb = 8192}, {name = "n-1", cpu_pct = 200}]',
        "nodes names 'n-1' twice",
    ),
    "empty cluster": (
        'nodes = [{name = "n", count = 2, cpu_pct = 200, slots = 2, memory_mb = 8192}]',
        "nodes = []",
        "nodes is missing",
    ),
    "no nodes of a kind": ("count = 2", "count = 0", "count must be a whole number of at least 1, not 0"),
    "zero slots": ("slots = 2", "slots = 0", "slots must be a whole number of at least 1, not 0"),
    "minimum above desired": (
        'name = "t"',
        'name = "t"\ndesired_nodes = 2\nminimum_nodes = 3',
        "minimum_nodes 3 is above desired_nodes 2",
    ),
    "level 0": ('name = "t"', 'name = "t"\nlevel = 0', "level must be a whole number of at least 1, not 0"),
    "a billion nodes": ("count = 2", "count = 1000000000", "count must be at most 10,000, not 1,000,000,000"),
    "a count with an exponent": ("count = 2", "count = 1e9", "count must be a whole number, not 1000000000.0"),
    "a hundred million instances": (
        '{name = "k", parallelism = 2',
        '{name = "k", parallelism = 100000000',
        "the number of instances must be at most 100,000, not 100,000,002",
    ),
    "a duration of millions of years": (
        "duration_s = 40",
        "duration_s = 1e15",
        "step_s of 0.25 fits 4e+15 times into duration_s; a run has at most 5,000,000",
    ),
    "a hundred million variants": (
        "[[topologies]]",
        f'[[matrix]]\nname = "{"".join(f"{{{a}}}" for a in "abcdefgh")}"\n'
        f"axes = {{{', '.join(f'{a} = {list(range(10))}' for a in 'abcdefgh')}}}\n[[topologies]]",
        "the number of variants must be at most 10,000, not 100,000,000",
    ),
    "a rate beyond all machines": (
        "ramp 0s=50 40s=300",
        "constant 1e300",
        "'1e300' is not a rate; write rows a second as a number from 0 to 1e+09",
    ),
    "a number beyond 64 bits": ("duration_s = 40", f"duration_s = 1{'0' * 400}", "a whole number is beyond 64 bits"),
    "a number of thousands of digits": ("duration_s = 40", f"duration_s = 1{'0' * 5000}", "digits"),
    "lists in lists": ("title =", f"deep = {'[' * 9999}{']' * 9999}\ntitle =", "nested too deeply to be read"),
    "tables in tables": (
        'title = "a short run"',
        f"title.{'a.' * 999}b = 1",
        "a name has more than 32 parts",
    ),
}


@pytest.mark.parametrize("case", SPOILT)
def test_a_spoilt_scenario_is_refused_in_one_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, culprit = SPOILT[case]
    assert SHORT.count(old) == 1
    path = tmp_path / "spoilt.toml"
    path.write_text(SHORT.replace(old, new))
    assert main(["sim", str(path), "--policy", "adaptive"]) == 2
    shown = capsys.readouterr()
    assert culprit in shown.err
    assert "spoilt.toml" in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
