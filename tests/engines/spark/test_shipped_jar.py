"""An application whose jars come by ``spark.jars`` alone: Spark sends them to executors that do not have them."""

import json
import subprocess
import sys

import pytest

from barograph.engines.spark.conf import PLUGIN_JAR, WORKLOADS_JAR

# In a process of its own, because the class path of the driver's JVM is that of its first session.
PROGRAM = """
import json
import sys

from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.model import Instance, Placement, Plan, Slot
from barograph.testing.local_cluster import open_local_cluster

SHIPPED = {"spark.jars": sys.argv[1], "spark.driver.extraClassPath": "", "spark.executor.extraClassPath": ""}
with open_local_cluster(ClusterSettings(nodes=2, seats=6), SHIPPED) as stage, stage.query(rate=200) as counting:
    loader = stage.spark._jvm.java.lang.ClassLoader.getSystemClassLoader()
    try:
        loader.loadClass("org.apache.spark.barograph.BarographPlugin")
        on_class_path = True
    except Exception:
        on_class_path = False
    epoch = counting.epoch()
    out = counting.output()
    counting.settle(lambda: counting.output() > out)
    cut = stage.engine.apply(Plan(cuts=("wordcount",)))
    after_cut = counting.epoch()
    moved = stage.engine.apply(Plan(Placement({Instance("wordcount", "count", 0): Slot("node-2")})))
    living, silent = stage.engine.living()
    out = counting.output()
    counting.settle(lambda: counting.output() > out)
    verdict = counting.verdict()
    print(json.dumps({
        "on_class_path": on_class_path, "cut": cut.ok, "epochs": [epoch, after_cut], "moved": moved.ok,
        "living": len(living), "silent": len(silent), "exact": verdict.exact,
    }))
"""


@pytest.mark.spark
@pytest.mark.slow  # whole, on hosts without our files, in tests/submit
def test_a_query_runs_is_observed_and_is_cut() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"{PLUGIN_JAR},{WORKLOADS_JAR}"],
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["on_class_path"]
    assert found["cut"]
    assert found["moved"]
    assert found["epochs"][1] == found["epochs"][0] + 1
    assert (found["living"], found["silent"]) == (2, 0)
    assert found["exact"]


WITHOUT_JAR = """
import tempfile
from pathlib import Path

import barograph
from barograph.engines.spark.cluster.embedded import start_cluster
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.conf import plugin_settings, workloads_settings
from barograph.engines.spark.session import open_session

folder = Path(tempfile.mkdtemp())
quick = {"spark.barograph.restart.patience": "20s", "spark.executor.extraClassPath": ""}
with start_cluster(ClusterSettings(nodes=1, seats=4)) as cluster:
    spark = open_session(
        "without", plugin_settings(), workloads_settings(), cluster.session_conf(), quick, log=folder / "log")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    source = spark.readStream.format("org.apache.spark.barograph.ReplaySource").option("segments", "0.0:1.0:9.0:9.0")
    writer = source.load().groupBy("value").count().writeStream.outputMode("update").format("noop")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(realTime="5 seconds")
    query = barograph.start(lambda: writer)
    try:
        query.awaitTermination()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    spark.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_executors_without_the_jar_are_one_sentence() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_JAR], capture_output=True, text=True, timeout=880, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    said = done.stdout.splitlines()[-1]
    assert said.startswith("BadInput: the query "), done.stdout[-2000:]
    assert "the application has 0: executors end as they start" in said
    assert "they do not have barograph-plugin.jar: barograph submit and barograph conf --ship send it" in said
