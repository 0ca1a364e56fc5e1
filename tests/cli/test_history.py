"""``barograph history`` and ``barograph replay`` on a history that a simulated run left."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from barograph.cli import history
from barograph.cli.history import still
from barograph.cli.main import main
from barograph.control.policy_in_sim import PolicyDecider
from barograph.engines.sim import Simulator, parse_scenario, run
from barograph.engines.spark.folders import STATE_VARIABLE
from barograph.history import Recorder, cycles
from barograph.history.files import FORMAT, parts
from barograph.history.read import rows
from barograph.history.scenario import scenario_of
from barograph.model import Cycle, Latency, Operator, TopologyMetrics
from barograph.policy.registry import named
from tests.cycles import chain, remembered, seen, work

SHORT = """
name = "short"
title = "a short run"
duration_s = 180
nodes = [{name = "n", count = 2, cpu_pct = 100, slots = 1, seats = 8, memory_mb = 8192}]
losses = [{at_s = 85, node = "n-2", back_s = 15}]
[[topologies]]
name = "t"
operators = [
  {name = "s", parallelism = 1, load = "steps 0s=50 60s=150", cost_ms = 0.5, cpu_pct = 20, memory_mb = 64},
  {name = "k", parallelism = 2, cost_ms = 3, cpu_pct = 60, memory_mb = 64},
]
edges = [{source = "s", target = "k", selectivity = 1.5}]
"""


@pytest.fixture(scope="module")
def recorded() -> tuple[Cycle, ...]:
    decider = PolicyDecider(named("adaptive"), keep_all=True)
    run(Simulator(parse_scenario(SHORT, "short"), seed=1), decider)
    return tuple(decider.cycles[1:])  # the first is at the start, when no time has passed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, recorded: tuple[Cycle, ...]) -> Path:
    tmp_path = tmp_path_factory.mktemp("history")
    history = Recorder(tmp_path, "adaptive", "act", clock=lambda: 1000.0, together=4)
    for cycle in recorded[:6]:
        history.record(cycle)
    history.close()
    history = Recorder(tmp_path, "adaptive", "act", clock=lambda: 1007.5, together=4)
    for cycle in recorded[6:]:
        history.record(cycle)
    history.close()
    return tmp_path


def test_the_listing_has_what_changed_and_the_gaps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("--- the controller was down for 7.5 s ---" in line for line in lines)
    assert main(["history", str(folder), "--all", "--last", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert "1970-01-01 00:16:47" in lines[-1]
    assert "in       150/s" in lines[-1]


def test_in_is_what_arrives_at_all_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of every topology, whether its source is listed first or not, also when another topology comes."""
    one = chain(Operator("s", 1, source=True), Operator("k", 1), name="one")
    two = replace(one, name="two", operators=(one.operators[1], one.operators[0]))
    busy = {"s": work(1000.0), "k": work(70.0)}
    history = Recorder(tmp_path, "adaptive", "act", clock=lambda: 1000.0)
    history.record(remembered(seen([two], {"two": busy}, cycle_s=10.0)))
    history.record(remembered(seen([one, two], {"one": busy, "two": busy}, cycle_s=10.0, at_s=10.0)))
    history.close()
    assert main(["history", str(tmp_path), "--all"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if " in " in line]
    assert [line.split(" in ")[1].split("/s")[0].strip() for line in lines] == ["100", "200"]


def test_the_p99_of_both_kinds_is_shown_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = chain(Operator("s", 1, source=True), Operator("k", 1), name="one")
    now = seen([one], {"one": {"s": work(1000.0), "k": work(70.0)}}, cycle_s=10.0)
    column, record = Latency(*[30.0] * 5), Latency(*[40.0] * 5)
    history = Recorder(tmp_path, "adaptive", "act", clock=lambda: 1000.0)
    for told in (
        TopologyMetrics("one", latency_due=column, latency_record=record),
        TopologyMetrics("one", latency_record=record, age_s=4.5),
    ):  # fmt: skip
        history.record(remembered(replace(now, topology_metrics=(told,))))
    history.close()
    assert main(["history", str(tmp_path), "--all"]) == 0
    lines = [line.split("p99 ms")[1].split() for line in capsys.readouterr().out.splitlines() if " p99 ms " in line]
    assert [" ".join(words[:7]) for words in lines] == [
        "30 by column 40 by record time", "- by column 40 by record time"
    ]  # fmt: skip
    (exact, _), (unknown, bound) = (
        [r["topologies"][0][n] for n in ("p99_ms", "record_p99_ms")] for r in rows(tmp_path)
    )
    assert (exact, unknown, bound) == (30.0, None, 40.0)
    assert [r["topologies"][0]["age_s"] for r in rows(tmp_path)] == [0.0, 4.5]


def test_json_has_every_entry_once(
    folder: Path, recorded: tuple[Cycle, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", str(folder), "--format", "json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["number"] for r in rows] == list(range(1, len(recorded) + 2))
    assert [r["kind"] for r in rows].count("gap") == 1
    assert all("cycle" not in r for r in rows)
    assert rows[1]["reasons"] and isinstance(rows[1]["reasons"][0]["numbers"], dict)
    assert {"forecast", "moved-little"} <= {reason["code"] for reason in rows[1]["reasons"]}


def test_a_still_view_has_each_entry_once(folder: Path) -> None:
    with still(folder) as view:
        numbers = [n for p in parts(view) for n in range(p.first, p.last + 1)]
        assert numbers == sorted(set(numbers))
        assert len(numbers) == 1 + len(list(cycles(folder)))
    assert not [p for p in folder.iterdir() if p.is_dir()]


def test_the_scenario_of_a_history_has_its_cluster_topologies_and_load(recorded: tuple[Cycle, ...]) -> None:
    made, found = parse_scenario(SHORT, "short"), scenario_of(recorded, "again")
    assert found.duration_s == pytest.approx(made.duration_s, abs=1.0)
    assert [n.name for n in found.nodes] == ["n-1", "n-2"]
    (workload,) = found.workloads
    assert workload.work["k"].cost_s == pytest.approx(0.003, rel=0.02)
    assert workload.work["s"].cost_s == pytest.approx(0.0005, rel=0.02)
    assert workload.flow[0].selectivity == pytest.approx(1.5, rel=0.02)
    load = workload.work["s"].load
    assert load is not None
    schedule = load.segments(180.0)
    rate_at = {s: next(p.rate_start for p in schedule if p.start_s <= s < p.end_s) for s in (25.0, 100.0)}
    assert rate_at == {25.0: pytest.approx(50, rel=0.05), 100.0: pytest.approx(150, rel=0.05)}
    (loss,) = found.losses
    assert loss.node == "n-2" and loss.at_s == pytest.approx(85, abs=5.1) and loss.back_s is not None


def test_replay_shows_what_another_policy_would_have_done(
    folder: Path, recorded: tuple[Cycle, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(folder), "--policy", "fixed", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [report[name]["policy"] for name in ("recorded", "simulated", "replayed")] == ["adaptive"] * 2 + ["fixed"]
    rows = sum(t.completed_rows for c in recorded for t in c.snapshot.topology_metrics)
    assert report["recorded"]["completed_rows"] == pytest.approx(rows)
    for name in ("simulated", "replayed"):
        assert report[name]["completed_rows"] == pytest.approx(1.5 * (50 * 60 + 150 * 120), rel=0.03)
    assert rows > report["simulated"]["completed_rows"], "rows that a failure repeated are counted twice"
    # in the scenario rebuilt from the history, the same policy uses about the same CPU
    assert report["simulated"]["cpu_used_s"] == pytest.approx(report["recorded"]["cpu_used_s"], rel=0.1)
    # declared shares do not change with the load: 20 + 2 x 60 %
    assert report["replayed"]["cpu_reserved_s"] == pytest.approx(1.4 * report["seconds"], rel=0.1)
    assert report["replayed"]["rescales"] == 0
    assert main(["replay", str(folder), "--policy", "none"]) == 0
    out = capsys.readouterr().out
    assert "replayed" in out and "what none would have done" in out


WRONG = {
    "no history": (["history", "nowhere"], "there is no history in 'nowhere'"),
    "bad format": (["history", "DIR", "--format", "xml"], "--format must be json or table"),
    "bad last": (["history", "DIR", "--last", "x"], "--last must be a whole number"),
    "no history to replay": (["replay", "nowhere"], "there is no history in 'nowhere'"),
    "no such policy": (["replay", "DIR", "--policy", "luck"], "there is no policy 'luck'"),
    "bad seed": (["replay", "DIR", "--seed", "x"], "--seed must be a whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_nonsense_is_refused_in_one_line(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, sentence = WRONG[case]
    assert main([str(folder) if a == "DIR" else a for a in arguments]) == 2
    shown = capsys.readouterr()
    assert sentence in shown.err and shown.err.count("\n") == 1 and shown.out == ""


def test_one_line_names_the_file_of_spark(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Spark starts, and once."""
    opened: list[Path] = []

    @contextlib.contextmanager
    def without_spark(_: object, logs: Path) -> Iterator[None]:
        opened.append(logs)
        yield

    monkeypatch.setattr(history, "opened", without_spark)
    monkeypatch.setattr(history, "show_answer", lambda *_: None)
    assert main(["history", str(folder), "--sql", "select 1"]) == 0
    assert capsys.readouterr().err == f"-- Spark's own output is in {opened[0] / 'spark.log'}\n"


@pytest.mark.parametrize("more", [[], ["--sql", "select code from reasons"]], ids=["listing", "sql"])
def test_a_history_of_another_format_is_refused(
    folder: Path, tmp_path: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    source = parts(folder)[0].path
    table = pq.ParquetFile(source).read().replace_schema_metadata(None)  # type: ignore[no-untyped-call]
    pq.write_table(table, tmp_path / source.name)  # type: ignore[no-untyped-call]
    assert main(["history", str(tmp_path), *more]) == 2
    shown = capsys.readouterr()
    assert f"has format 0, and this version of Barograph reads only format {FORMAT}" in shown.err and shown.out == ""


STATEMENTS = r"""
import json, sys
from pathlib import Path
from barograph.cli.history import opened, show_answer
from barograph.cli.main import main
from barograph.model import BadInput
folder, logs, out = map(Path, sys.argv[1:4])
assert main(["history", str(folder), "--sql", sys.argv[4], "--format", "json"]) == 0
print("the command is done")
fine = [
    "select 1 as a;",
    "with n as (select number from cycles) select number from n order by number desc limit 1 -- the last",
    "(select 1 as a) union all (select 2)",
    "values (1), (2)",
]
bad = [
    "select nothing from nowhere",
    f"insert overwrite directory '{out}' using parquet select 1",
    f"from cycles insert overwrite directory '{out}' using parquet select number",
    f"with n as (select 1 as a) insert overwrite directory '{out}' using parquet select a from n",
    f"create table t using parquet location '{out}' as select 1",
    "drop view cycles",
    "create or replace temp view cycles as select 1",
    "set spark.sql.ansi.enabled=false",
    "select 1; select 2",
    "select 1); drop view cycles; select (1",
    "select reflect('java.lang.System', 'setProperty', 'a', 'b')",
    "select java_method('java.lang.System', 'exit', 0)",
    "",
]
with opened(folder, logs) as spark:
    for query in fine:
        show_answer(spark, query, "json")
    for query in bad:
        try:
            show_answer(spark, query, "json")
            print("accepted:", query)
        except BadInput as error:
            assert str(error).startswith("--sql") and chr(10) not in str(error), error
    print(json.dumps(spark.sql("select count(*) as n from cycles").first().asDict()))
"""


COUNTED = """
select kind, count(*) as n, (select max(arrived) from operators) as most from cycles group by kind order by kind
"""


@pytest.fixture(scope="module")
def asked(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """What the command answered to ``COUNTED``, and what was answered to ``STATEMENTS``. In a process of their own: the
    first Spark session of a process fixes its JVM's settings for all later ones."""
    work = tmp_path_factory.mktemp("statements")
    (work / "logs").mkdir()
    out = work / "out"
    command = [sys.executable, "-c", STATEMENTS, str(folder), str(work / "logs"), str(out), COUNTED]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), STATE_VARIABLE: str(work / "state")}
    done = subprocess.run(command, env=environment, cwd=work, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not out.exists()
    lines = done.stdout.splitlines()
    at = lines.index("the command is done")
    return lines[:at], lines[at + 1 :]


@pytest.mark.spark
def test_queries_in_sql(folder: Path, asked: tuple[list[str], list[str]]) -> None:
    found = [json.loads(line) for line in asked[0]]
    assert [(r["kind"], r["n"]) for r in found] == [("cycle", len(list(cycles(folder)))), ("gap", 1)]
    arrived = max(
        sum(c.snapshot.metrics.row(i).arrived for i in t.instances() if i.operator == o.name)
        for c in cycles(folder)
        for t in c.snapshot.topologies
        for o in t.operators
    )
    assert found[0]["most"] == pytest.approx(arrived)


@pytest.mark.spark
def test_sql_is_one_query_that_changes_nothing(folder: Path, asked: tuple[list[str], list[str]]) -> None:
    entries = 1 + len(list(cycles(folder)))
    found = [json.loads(line) for line in asked[1]]
    assert found == [
        {"a": 1}, {"number": entries}, {"a": 1}, {"a": 2}, {"col1": 1}, {"col1": 2}, {"n": entries},
    ]  # fmt: skip
