"""Applications in Scala under ``submit --class``, one with ``transformWithState``: seen, steered, called again."""

import contextlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.submit.test_submitted_script import ROOT, Submitted, decisions, submitted, topologies

from barograph.engines.spark.cluster.node_status import executors_of
from barograph.engines.spark.cluster.processes import kill, python_environment
from barograph.engines.spark.cluster.runs import live_runs
from barograph.engines.spark.driver.client import RemoteEngine, reachable
from barograph.engines.spark.query.checkpoint import committed_offsets, last_committed_epoch
from barograph.model import Instance, Load, Placement, Plan, RefusalCode, Rescale, Slot
from barograph.model.loads.schedule import encode

SCALA = Path(__file__).with_name("scala")
ENOUGH_ROWS = 1000
NAME, STATEFUL = "counts", "transformwithstateexec"
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All applications, by the compiler that compiles the plug-in."""
    spec = importlib.util.spec_from_file_location("compile", ROOT / "jvm" / "compile.py")
    assert spec is not None and spec.loader is not None
    compiler = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compiler)
    target = tmp_path_factory.mktemp("jar") / "counts.jar"
    compiler._compile_jar("application", sorted(SCALA.glob("*.scala")), target, [])
    return target


def test_an_application_in_scala_is_seen_steered_and_called_again(
    jar: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    segments = encode(Load.parse("constant 300").schedule(900.0).segments)
    words = ["--workloads", "--act", "--nodes", "2", "--conf", "spark.sql.shuffle.partitions=2"]
    words += ["--class", "counts.Main", str(jar), str(checkpoint), segments]

    def committed() -> int:
        return last_committed_epoch(checkpoint) or 0

    def topology() -> dict[str, Any]:
        return next(iter(topologies(capsys)), {})

    with submitted(tmp_path, *words) as program:
        program.settle(lambda: (topology().get("in_rows_s") or 0) > 0, 300.0)
        assert not topology()["supervised"], "its handle is Spark's own"
        program.settle(lambda: any(d["outcome"] == "applied" and d["limits"] for d in decisions(capsys)), 120.0)
        program.settle(lambda: set(topology()["limits"]) > {f"{STATEFUL}/0", f"{STATEFUL}/1"}, 60.0)
        ((driver, _),) = reachable()
        moved_and_scaled(program, driver)

        again = "counts.Main is called again"
        assert again not in program.said
        lose_until(program, again, capsys)
        program.settle(lambda: (topology().get("in_rows_s") or 0) > 0, 120.0)
        before = committed()
        program.settle(lambda: committed() > before or not driver.apply(Plan(cuts=(NAME,))), 120.0)
        program.settle(lambda: has_read(checkpoint) or not driver.apply(Plan(cuts=(NAME,))), 240.0)
        assert "did not get in" not in program.said
        assert program.end() != 0
    assert live_runs() == ()
    assert_every_word_is_counted(checkpoint)


def has_read(checkpoint: Path) -> bool:
    """Enough to judge; a machine with other work on it takes longer."""
    return sum(committed_offsets(checkpoint)) > ENOUGH_ROWS


def assert_every_word_is_counted(checkpoint: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCALA / "counted_words.py"), str(checkpoint)], env=python_environment(),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    verdict = json.loads(done.stdout.splitlines()[-1])
    assert verdict["rows"] > ENOUGH_ROWS
    assert verdict["wrong"] == {}


@pytest.mark.limit(1500)
def test_two_queries_of_which_main_awaits_any_go_on_after_a_lost_executor(
    jar: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoints = [tmp_path / "first", tmp_path / "second"]
    segments = encode(Load.parse("constant 300").schedule(900.0).segments)
    words = ["--workloads", "--act", "--nodes", "2", "--seats", "12", "--conf", "spark.sql.shuffle.partitions=2"]
    words += ["--class", "counts.Two", str(jar), *map(str, checkpoints), segments]

    def committed() -> list[int]:
        return [last_committed_epoch(checkpoint) or 0 for checkpoint in checkpoints]

    def both_read() -> bool:
        return sorted(t["name"] for t in topologies(capsys) if (t.get("in_rows_s") or 0) > 0) == ["first", "second"]

    def both_commit(driver: RemoteEngine) -> bool:
        if all(now > then for now, then in zip(committed(), before, strict=True)):
            return True
        driver.apply(Plan(cuts=("first", "second")))
        return False

    with submitted(tmp_path, *words) as program:
        program.settle(both_read, 300.0)
        ((driver, _),) = reachable()
        before = committed()
        program.settle(lambda: both_commit(driver), 120.0)
        lose_until(program, "counts.Two is called again", capsys)
        program.settle(both_read, 120.0)
        before = committed()
        program.settle(lambda: both_commit(driver), 120.0)
        program.settle(
            lambda: all(map(has_read, checkpoints)) or not driver.apply(Plan(cuts=("first", "second"))), 240.0
        )
        assert program.end() != 0
    assert live_runs() == ()
    for checkpoint in checkpoints:
        assert_every_word_is_counted(checkpoint)


@pytest.mark.limit(1500)
def test_an_application_with_sparks_own_partitions_starts_with_as_many_as_fit(
    jar: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    segments = encode(Load.parse("constant 300").schedule(900.0).segments)
    words = ["--workloads", "--nodes", "2", "--seats", "8"]
    words += ["--class", "counts.Main", str(jar), str(checkpoint), segments]
    with submitted(tmp_path, *words) as program:
        program.settle(lambda: any((t.get("in_rows_s") or 0) > 0 for t in topologies(capsys)), 300.0)
        ((driver, _),) = reachable()
        program.settle(
            lambda: last_committed_epoch(checkpoint) is not None or not driver.apply(Plan(cuts=(NAME,))), 120.0
        )
        assert program.said.count("counts.Main is called again") == 1, program.said[-4000:]
        assert "it starts with" in program.said and "spark.sql.shuffle.partitions=" in program.said
        assert driver.observe().topology(NAME).operator(STATEFUL).parallelism <= 12
        assert program.end() != 0


def moved_and_scaled(program: Submitted, driver: RemoteEngine) -> None:
    """By plans of ours, of which none is ever stale. The policy steers too, and may change it later."""
    topology = driver.observe().topology(NAME)
    assert {o.name: o.stateful for o in topology.operators} == {"source": False, "map": False, STATEFUL: True}
    states = [Instance(NAME, STATEFUL, 0), Instance(NAME, STATEFUL, 1)]
    for node in ("node-1", "node-2"):
        outcome = driver.apply(Plan(Placement(dict.fromkeys(states, Slot(node)))))
        assert outcome.ok, outcome.refused
        there = driver.observe().placement
        assert [there[i].node for i in states] == [node, node]
    outcome = driver.apply(Plan(rescales=(Rescale(NAME, "map", 3),)))
    assert outcome.ok, outcome.refused
    program.settle(lambda: driver.observe().topology(NAME).operator("map").parallelism == 3, 60.0)
    (refused,) = driver.apply(Plan(rescales=(Rescale(NAME, STATEFUL, 3),))).refused
    assert refused.code is RefusalCode.FIXED_PARALLELISM
    assert refused.reason.endswith("changing their number takes a repartition of the state")


def lose_until(program: Submitted, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Ends executors that run the query, until the program says so; between two epochs none runs it."""
    (run,) = live_runs()

    def one_more_ended() -> bool:
        by_node = topologies(capsys)[0]["by_node"]
        used = next((node for node, instances in by_node.items() if instances), None)
        executors = executors_of(run, used).values() if used is not None else ()
        kill(executors)
        with contextlib.suppress(TimeoutError):
            program.settle(lambda: said in program.said, 20.0)
        return said in program.said

    program.settle(one_more_ended)


@pytest.mark.parametrize(
    ("way", "code", "says"),
    [
        ("returns", 0, "main was called with returns"),
        ("throws", 1, 'Exception in thread "main" java.lang.IllegalStateException: not today'),
        ("exits", 7, "-- advise: queries are kept"),
        ("has a bug", 1, "counts.Ends is not called again: a bug in the query: 3 times the same failure"),
    ],
)
def test_an_application_ends_as_it_would_by_itself(jar: Path, tmp_path: Path, way: str, code: int, says: str) -> None:
    words = [
        "--workloads",
        "--master",
        "local[4]",
        "--class",
        "counts.Ends",
        str(jar),
        way,
        str(tmp_path / "checkpoint"),
    ]
    with submitted(tmp_path, *words) as program:
        assert program.process.wait(240) == code, program.said[-4000:]
        assert says in program.said
        assert "Traceback" not in program.said, program.said[-4000:]
        assert "without Barograph's policy" not in program.said


def test_a_class_that_is_not_there_is_said_in_one_sentence(jar: Path, tmp_path: Path) -> None:
    with submitted(tmp_path, "--master", "local[1]", "--class", "counts.Mian", str(jar)) as program:
        assert program.process.wait(240) == 1, program.said[-4000:]
        (said,) = [line for line in program.said.splitlines() if line.startswith("barograph submit: ")]
        assert said == (
            "barograph submit: counts.Mian is no class with a main method: "
            "java.lang.ClassNotFoundException: counts.Mian"
        )
