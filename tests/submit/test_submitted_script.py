"""A script as Spark's guide writes it, not a line changed, under ``barograph submit``."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barograph.cli.main import main
from barograph.engines.spark.cluster.node_status import executors_of
from barograph.engines.spark.cluster.processes import kill, marked, python_environment
from barograph.engines.spark.cluster.runs import Run, live_runs
from barograph.engines.spark.conf import WORKLOADS_JAR
from barograph.engines.spark.query.checkpoint import last_committed_epoch
from barograph.model import Load
from barograph.model.loads.schedule import encode
from barograph.submit.kept_starts import NOT_REAL_TIME

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "windowed_word_count.py"
VERDICT = Path(__file__).with_name("window_counts.py")
WATCHED = Path(__file__).with_name("watched.py")
ADVICE = re.compile(r"^-- adaptive: .*(rescale|move).*; advised$", re.MULTILINE)

OTHER = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

seen = []

class Listener(StreamingQueryListener):
    def onQueryStarted(self, event): seen.append("started")
    def onQueryProgress(self, event): pass
    def onQueryTerminated(self, event): seen.append("terminated")

files = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
builder = SparkSession.builder.config("spark.sql.extensions", "their.Rules").config("spark.jars", sys.argv[1])
spark = builder.config("spark.sql.streaming.checkpointFileManagerClass", files).getOrCreate()
listener = Listener()
spark.streams.addListener(listener)
rows = spark.readStream.format("rate").load().writeStream.format("noop").queryName("rows")
query = rows.option("checkpointLocation", sys.argv[2]).trigger(processingTime="1 second").start()
same = spark.streams.get(query.id).runId == query.runId
active, waited = [q.name for q in spark.streams.active], spark.streams.awaitAnyTermination(0.1)
query.stop()
spark.streams.awaitAnyTermination()
spark.streams.removeListener(listener)
conf = spark.sparkContext.getConf()
print(json.dumps({
    "same": same, "active": active, "waited": waited, "extensions": conf.get("spark.sql.extensions"), "seen": seen,
    "jars": [jar.rpartition("/")[2] for jar in conf.get("spark.jars").split(",")], "name": conf.get("spark.app.name"),
}))
sys.exit(5)
"""

THREADS = """
import json, threading, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
handles = {}

def start_one(name):
    source = spark.readStream.format("org.apache.spark.barograph.ReplaySource").option("partitions", "1")
    lines = source.option("segments", "0.0:1.0:50.0:50.0").load()
    writer = lines.writeStream.format("noop").queryName(name).option("checkpointLocation", name).outputMode("update")
    handles[name] = writer.trigger(realTime="2 seconds").start()

threads = [threading.Thread(target=start_one, args=(name,)) for name in ("first", "second")]
for thread in threads: thread.start()
for thread in threads: thread.join()
spark.conf.set("spark.barograph.query.levl", "1")
try: start_one("third")
except Exception as error: refused = str(error)
spark.conf.unset("spark.barograph.query.levl")
spark.conf.set("spark.barograph.query.level", "1")
start_one("third")
deadline = time.monotonic() + 600
while not all(any(p.numInputRows for p in query.recentProgress) for query in handles.values()):
    assert all(query.isActive for query in handles.values()) and time.monotonic() < deadline
    time.sleep(0.2)
print(json.dumps({
    "active": sorted(q.name for q in spark.streams.active), "kept": [list(q.restarts) for q in handles.values()],
    "refused": refused,
}), flush=True)
handles["third"].awaitTermination()
"""


class Submitted:
    """A program under ``barograph submit``. said: what it wrote, its own output first."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "barograph.cli.main", "submit", *words], stdout=out, stderr=err,
                env=python_environment(), start_new_session=True, cwd=folder,
            )  # fmt: skip

    @property
    def said(self) -> str:
        return self._out.read_text() + self._err.read_text()

    def settle(self, condition: Callable[[], bool], timeout_s: float = 240.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert self.process.poll() is None, self.said[-6000:]
            if time.monotonic() > deadline:
                raise TimeoutError(self.said[-6000:])
            time.sleep(0.5)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextlib.contextmanager
def submitted(folder: Path, *words: str) -> Iterator[Submitted]:
    program = Submitted(folder, *words)
    try:
        yield program
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.process.pid, signal.SIGKILL)
        program.process.wait()


def topologies(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["status", "--format", "json"]) == 0
    return [topology for driver in json.loads(capsys.readouterr().out) for topology in driver["topologies"]]


def decisions(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    main(["decisions", "--all", "--format", "json"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def lose_a_used_executor(program: Submitted, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Ends the executor that runs the query. Each epoch may run on another one, and between two epochs none runs it: an
    executor that is ended then is no loss to the query, and the next one is ended."""

    def lost() -> bool:
        return any(topology["restarts"] for topology in topologies(capsys))

    def one_more_ended() -> bool:
        by_node = topologies(capsys)[0]["by_node"]
        used = next((node for node, instances in by_node.items() if instances), None)
        executors = executors_of(run, used).values() if used is not None else ()
        if not executors:
            return False
        kill(executors)
        with contextlib.suppress(TimeoutError):
            program.settle(lost, 20.0)
        return lost()

    program.settle(one_more_ended)


def assert_no_restart_is_seen(seen: dict[str, Any]) -> None:
    """By ``spark.streams``, by a listener, and by the handle that ``toTable`` returned: two queries that run on."""
    assert len(seen["started"]) == len(set(seen["started"])) == 2
    assert seen["started"][0] == seen["table"]
    assert seen["active"][-1] == sorted(seen["started"])
    assert [len(now) for now in seen["active"]] == [1, 2], "none was missing at any time"
    assert (seen["terminated"], seen["waited"]) == ([], 0)
    assert seen["same"] and seen["table_is_active"]


@pytest.mark.spark
@pytest.mark.limit(1500)
def test_an_unchanged_script_survives_an_executor_and_counts_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "barograph." not in SCRIPT.read_text().split('"""')[2].replace("org.apache.spark.barograph.", "")
    checkpoint, seen_file = tmp_path / "checkpoint", tmp_path / "seen.json"
    words = ["--workloads", "--nodes", "2", "--conf", "spark.sql.shuffle.partitions=2"]
    words += [str(WATCHED), str(seen_file), str(SCRIPT), str(checkpoint)]

    def committed() -> int:
        return last_committed_epoch(checkpoint) or 0

    def seen() -> dict[str, Any]:
        return dict(json.loads(seen_file.read_text()))

    with submitted(tmp_path, *words) as program:
        program.settle(lambda: committed() > 0 and len(topologies(capsys)) == 2, 800.0)
        said = (tmp_path / "err").read_text()
        assert said.startswith("-- advise: queries are kept; adaptive only advises, and changes nothing")
        for topology in topologies(capsys):
            assert topology["supervised"]
            assert topology["epoch_s"] is None, "its trigger sets the length of its epochs"
        program.settle(lambda: bool(decisions(capsys)))
        assert {(decision["mode"], decision["policy"]) for decision in decisions(capsys)} == {("advise", "adaptive")}
        (run,) = live_runs()
        lose_a_used_executor(program, run, capsys)
        before = committed()
        program.settle(lambda: committed() > before + 1)
        program.settle(lambda: len(seen()["progressed"]) == 2)
        assert_no_restart_is_seen(seen())
        assert program.end() != 0
        assert "Batch: " in program.said
        assert "not kept" not in program.said
        assert "did not get in" not in program.said
    assert live_runs() == ()
    assert marked(run.run_id) == ()
    done = subprocess.run(
        [sys.executable, str(VERDICT), str(checkpoint)], env=python_environment(), capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] > 1000
    assert found["counts"] > 1000
    assert found["wrong"] == {}


@pytest.mark.spark
@pytest.mark.slow
def test_in_mode_advise_it_prints_what_it_would_do_and_does_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = encode(Load.parse("ramp 0s=1000 20s=1000 40s=10000 900s=10000").schedule(900.0).segments)
    words = ["--workloads", "--conf", "spark.sql.shuffle.partitions=2", str(SCRIPT), str(tmp_path / "checkpoint"), load]
    with submitted(tmp_path, *words) as program:
        program.settle(lambda: bool(topologies(capsys)), 800.0)
        program.settle(lambda: ADVICE.search(program.said) is not None, 600.0)
        (topology,) = topologies(capsys)
        assert (topology["operators"], topology["restarts"]) == ({"source": 2, "aggregate": 2}, [])


@pytest.mark.spark
@pytest.mark.limit(900)
def test_another_query_runs_as_spark_runs_it_and_the_settings_of_the_script_are_kept(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(OTHER)
    words = ["--master", "local[2]", "app.py", str(WORKLOADS_JAR), "checkpoint"]
    with submitted(tmp_path, *words) as program:
        code = program.process.wait(880)
    assert code == 5, program.said[-4000:]
    lines = program.said.splitlines()
    found = next(json.loads(line) for line in lines if line.startswith("{"))
    assert found == {
        "same": True, "active": ["rows"], "waited": False, "name": "app.py", "seen": found["seen"],
        "extensions": "their.Rules,org.apache.spark.barograph.BarographExtensions",
        "jars": ["barograph-workloads.jar", "barograph-plugin.jar"],
    }  # fmt: skip
    assert found["seen"] in (["started"], ["started", "terminated"]), "Spark tells of an end a moment later"
    assert f"-- the query rows is not kept: {NOT_REAL_TIME}" in lines
    (missing,) = [line for line in lines if "did not get in" in line]
    assert "spark.sql.streaming.checkpointFileManagerClass is" in missing


@pytest.mark.spark
@pytest.mark.limit(900)
def test_queries_may_be_started_in_threads_and_with_options_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """PySpark gives each of them a thread of the JVM, in which no session is active."""
    (tmp_path / "app.py").write_text(THREADS)
    short = ("--conf", "spark.barograph.epochs.most=5s")  # rows are in the progress once their epoch has ended
    with submitted(tmp_path, "--act", "--workloads", "--master", "local[8]", *short, "app.py") as program:
        program.settle(lambda: '"active"' in program.said, 800.0)
        found = next(json.loads(line) for line in program.said.splitlines() if line.startswith("{"))
        assert found == {
            "active": ["first", "second", "third"], "kept": [[], [], []],
            "refused": "there is no key 'spark.barograph.query.levl': write spark.barograph.query.level",
        }  # fmt: skip
        capsys.readouterr()
        assert main(["priority", "list", "--format", "json"]) == 0
        levels = {row["topology"]: row["level"] for row in json.loads(capsys.readouterr().out)}
        assert levels == {"first": 2, "second": 2, "third": 1}
