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


def printed(folder: Path, *cells: str) -> str:
    """What the last cell of a notebook prints."""
    made: Any = nbformat.v4  # its functions have no types
    notebook = made.new_notebook(cells=[made.new_code_cell(cell) for cell in cells])
    NotebookClient(
        notebook, timeout=700, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return "".join(out.text for out in notebook.cells[-1].outputs if out.get("name") == "stdout")


@pytest.mark.spark
@pytest.mark.limit(900)
def test_a_notebook_keeps_a_query(tmp_path: Path) -> None:
    """With Spark's defaults of a seat for each core and 200 shuffle partitions: both are chosen so that it fits."""
    jars = ["barograph-workloads.jar", "barograph-plugin.jar"]
    assert printed(tmp_path, SESSION, QUERY, PROGRESS) == f"() {jars}\n"


@pytest.mark.spark
@pytest.mark.limit(900)
@pytest.mark.slow
def test_a_session_that_was_made_too_early_is_one_sentence(tmp_path: Path) -> None:
    configured, started = printed(tmp_path, TOO_EARLY).splitlines()
    assert configured.startswith("BadInput a Spark session runs already, without Barograph's plug-in: ")
    assert started.startswith("BadInput this Spark session runs without Barograph's plug-in: run the script with ")
