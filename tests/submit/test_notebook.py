"""Notebooks, run by Jupyter's own kernel: a session by ``barograph.configure``, and one that came too early."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from barograph.engines.spark.conf import WORKLOADS_JAR

SESSION = f"""
import barograph
from pyspark.sql import SparkSession

builder = SparkSession.builder.appName("notebook").config("spark.jars", "{WORKLOADS_JAR}")
builder = builder.config("spark.ui.enabled", "false")
spark = barograph.configure(builder).getOrCreate()
"""
QUERY = """
source = spark.readStream.format("org.apache.spark.barograph.ReplaySource").option("partitions", "2")
lines = source.option("segments", "0.0:1.0:50.0:50.0").load()
writer = lines.groupBy("value").count().writeStream.outputMode("update").format("noop")
query = barograph.start(writer.option("checkpointLocation", "checkpoint").trigger(realTime="2 seconds"))
"""
STEERED = """
source = spark.readStream.format("org.apache.spark.barograph.ReplaySource").option("partitions", "2")
lines = source.option("segments", "0.0:3600.0:50.0:50.0").load()
counts = barograph.named(lines.groupBy("value").count(), "count")
writer = counts.writeStream.outputMode("update").format("noop").option("checkpointLocation", "checkpoint")
query = barograph.start(
    writer.trigger(realTime="2 seconds"), policy="adaptive", mode="advise", limits={"count": (1, 2)}
)
"""
LOOKING = """
import json, os, subprocess, sys, time
def shown(*words):
    command = [sys.executable, "-m", "barograph.cli.main", *words, "--format", "json"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
deadline = time.monotonic() + 600
counting = instances = None
while not counting or instances is None or instances > 2:
    assert query.isActive and time.monotonic() < deadline, (counting, instances)
    time.sleep(0.5)
    decisions = [json.loads(line) for line in shown("decisions", str(os.getpid()), "--all").splitlines()]
    counting = [d for d in decisions if d.get("outcome") == "advised"]
    (status,) = json.loads(shown("status", str(os.getpid())))
    instances = next((t["operators"].get("count") for t in status["topologies"]), None)
query.stop()
print(os.getpid(), counting[-1]["policy"], counting[-1]["mode"])
"""
PROGRESS = """
import time
deadline = time.monotonic() + 600
while not any(p.numInputRows for p in query.recentProgress):
    assert query.isActive and time.monotonic() < deadline
    time.sleep(0.2)
query.stop()
print(query.restarts, [jar.rpartition("/")[2] for jar in spark.conf.get("spark.jars").split(",")])
"""
TOO_EARLY = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
import barograph
for call in (lambda: barograph.configure(SparkSession.builder), lambda: barograph.start(lambda: None)):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error)
"""


def run(folder: Path, *cells: str) -> list[dict[str, str]]:
    """What each cell of a notebook writes, by stream."""
    made: Any = nbformat.v4  # its functions have no types
    notebook = made.new_notebook(cells=[made.new_code_cell(cell) for cell in cells])
    NotebookClient(
        notebook, timeout=700, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return [
        {name: "".join(out.text for out in cell.outputs if out.get("name") == name) for name in ("stdout", "stderr")}
        for cell in notebook.cells
    ]


def printed(folder: Path, *cells: str) -> str:
    """What the last cell of a notebook prints."""
    return run(folder, *cells)[-1]["stdout"]


@pytest.mark.spark
@pytest.mark.limit(900)
def test_a_notebook_keeps_a_query(tmp_path: Path) -> None:
    """With Spark's defaults of a seat for each core and 200 shuffle partitions: both are chosen so that it fits."""
    jars = ["barograph-workloads.jar", "barograph-plugin.jar"]
    assert printed(tmp_path, SESSION, QUERY, PROGRESS) == f"() {jars}\n"


@pytest.mark.spark
@pytest.mark.limit(900)
def test_a_notebook_says_how_to_look_at_the_policy_that_it_chose(tmp_path: Path) -> None:
    _, started, looked = run(tmp_path, SESSION, STEERED, LOOKING)
    pid, *rest = looked["stdout"].split()
    assert rest == ["adaptive", "advise"]
    assert f"barograph: adaptive advises; look with: barograph decisions {pid}\n" in started["stderr"]


@pytest.mark.spark
@pytest.mark.limit(900)
@pytest.mark.slow
def test_a_session_that_was_made_too_early_is_one_sentence(tmp_path: Path) -> None:
    configured, started = printed(tmp_path, TOO_EARLY).splitlines()
    assert configured.startswith("BadInput a Spark session runs already, without Barograph's plug-in: ")
    assert started.startswith("BadInput this Spark session runs without Barograph's plug-in: run the script with ")
