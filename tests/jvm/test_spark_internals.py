"""Which file of the plug-in may use which internal part of Spark, and why: a new Spark version can break exactly these.

Every file is in a package below org.apache.spark, so the compiler lets each use what is private to Spark. Internal is
what is not in ``PUBLIC``. Files of jvm/internals may use everything; the unit tests in jvm/tests too.
"""

import re
from pathlib import Path

import pytest

JVM = Path(__file__).parents[2] / "jvm"
SPARK = "org.apache.spark."
# Packages, and names directly in org.apache.spark, that Spark offers to its users.
PUBLIC = frozenset(
    {
        "SparkContext", "TaskContext", "Partition", "Partitioner", "SparkException", "FutureAction",
        "api.plugin", "rdd", "sql.SparkSession", "sql.SparkSessionExtensions", "sql.types", "sql.util", "sql.streaming",
        "sql.connector.catalog", "sql.connector.expressions", "sql.connector.metric", "sql.connector.read",
        "sql.connector.read.streaming",
        "sql.connector.write", "sql.connector.write.streaming", "scheduler.SparkListener*",
    }
)  # fmt: skip
LOGGING = {"internal.Logging"}
PLAN = {"sql.catalyst", "sql.execution"}
ALLOWED: dict[str, tuple[str, set[str]]] = {
    "enforce/Enforcer.scala": ("writes to Spark's log", LOGGING),
    "kafka/EndOffsets.scala": ("writes to Spark's log", LOGGING),
    "kafka/KafkaInput.scala": ("writes to Spark's log", LOGGING),
    "lease/Troubles.scala": ("writes to Spark's log", LOGGING),
    "orders/Warm.scala": (
        "compiles generated code and opens the state's library where an instance will move to, as Spark does there",
        {"sql.catalyst", "sql.execution", "util.SerializableConfiguration"},
    ),
    "planner/BarographExtensions.scala": ("a rule of the planner is a function of physical plans", PLAN),
    "planner/CuttableScan.scala": ("extends Spark's real-time scan", PLAN),
    "planner/OperatorExec.scala": ("is a node of a physical plan", PLAN),
    "planner/RecordTime.scala": ("reads a time from a row in Spark's own form", {"sql.catalyst"}),
    "planner/Stages.scala": ("reads physical plans", PLAN),
    "planner/SteerRealTime.scala": ("changes physical plans", PLAN | LOGGING),
    "plugin/ExecutorMail.scala": ("writes to Spark's log", LOGGING),
    "plugin/Mailboxes.scala": ("writes to Spark's log", LOGGING),
    "plugin/Reach.scala": ("writes to Spark's log", LOGGING),
    "plugin/Reporter.scala": ("writes to Spark's log", LOGGING),
    "shuffle/Credit.scala": (
        "reads messages of Spark's streaming shuffle and flushes its writer",
        {"SparkEnv", "network", "shuffle", "util.ErrorNotifier"},
    ),
    "shuffle/Grants.scala": ("sends messages of Spark's streaming shuffle", {"network"}),
    "shuffle/Guard.scala": (
        "extends the handler of Spark's streaming shuffle",
        {"network", "shuffle", "util.ErrorNotifier"},
    ),
    "shuffle/Proof.scala": ("speaks over a connection of Spark's streaming shuffle", {"network"}),
    "shuffle/ProvenReader.scala": ("extends reader and queue of Spark's streaming shuffle", {"network", "shuffle"}),
    "shuffle/MeteredShuffle.scala": (
        "extends reader, writer and queue of Spark's streaming shuffle",
        {"network", "scheduler.MapStatus", "shuffle"},
    ),
    "shuffle/MeteredShuffleManager.scala": ("extends Spark's shuffle manager", {"shuffle", "util.ErrorNotifier"}),
    "source/Lines.scala": ("writes words eight bytes at a time", {"unsafe"}),
    "source/ReplayReader.scala": ("makes rows in Spark's own form", {"sql.catalyst", "unsafe"}),
    "source/ReplayStream.scala": ("keeps a note in the query's checkpoint", {"sql.execution"}),
    "source/TimedSink.scala": ("reads rows in Spark's own form", {"sql.catalyst", "sql.internal.connector"}),
    "telemetry/Lives.scala": ("needs the executor's name", {"SparkEnv"}),
    "testing/Crowd.scala": ("needs the executor's name", {"SparkEnv"}),
    "testing/CrowdedTopology.scala": ("needs the executor's name", {"SparkEnv"}),
    "testing/DelayedOrders.scala": ("needs the executor's name", {"SparkEnv"}),
    "testing/Dial.scala": ("changes settings of a running executor", {"SparkEnv"}),
    "testing/HeapUse.scala": ("needs the executor's name", {"SparkEnv"}),
    "testing/SteppedDriver.scala": (
        "writes the logs of a query as Spark does, with a class loader for each driver",
        {"sql.execution", "sql.internal.SQLConf", "util.ChildFirstURLClassLoader"},
    ),
    "testing/WriteCost.scala": ("compares with Spark's own checkpoint files", {"sql.execution"}),
    "testing/Stranger.scala": ("speaks Spark's RPC from outside", {"SecurityManager", "SparkConf", "rpc"}),
    "testing/Submission.scala": ("asks a master to run a program", {"deploy", "rpc"}),
    "testing/UnlistedSink.scala": ("is a sink for rows that are updates", {"sql.internal.connector"}),
}
FILES = {
    name: file
    for file in sorted(JVM.rglob("*.scala"))
    if not (name := str(file.relative_to(JVM))).startswith(("internals/", "tests/"))
}


def spark_names(text: str) -> set[str]:
    """What a source names of Spark, imported or written out, without org.apache.spark and without our own packages."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"", "", text, flags=re.DOTALL)
    code = re.sub(r"^package .*", "", code, flags=re.MULTILINE)
    found = set()
    for path, group in re.findall(r"org\.apache\.spark\.((?:\w+\.)*)(\{[^}]*\}|\w+)", code):
        for part in group.strip("{}").split(","):
            found.add(path + part.split("=>")[0].strip())
    return {name for name in found if "barograph" not in name.split(".")}


def is_public(name: str) -> bool:
    package = name.rpartition(".")[0]
    # A class inside a class: sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus.
    while re.search(r"(^|\.)[A-Z]", package):
        name, package = package, package.rpartition(".")[0]
    return name in PUBLIC or package in PUBLIC or any(p[-1] == "*" and name.startswith(p[:-1]) for p in PUBLIC)


def uses(file: Path) -> set[str]:
    return {name for name in spark_names(file.read_text()) if not is_public(name)}


def covers(allowed: str, name: str) -> bool:
    return name == allowed or name.startswith(f"{allowed}.")


@pytest.mark.parametrize("name", FILES)
def test_a_file_uses_only_the_internal_parts_that_are_listed_for_it(name: str) -> None:
    _, allowed = ALLOWED.get(name, ("", set()))
    assert {used for used in uses(FILES[name]) if not any(covers(part, used) for part in allowed)} == set()


@pytest.mark.parametrize("name", ALLOWED)
def test_nothing_is_listed_in_vain(name: str) -> None:
    why, allowed = ALLOWED[name]
    assert why
    assert {part for part in allowed if not any(covers(part, used) for used in uses(FILES[name]))} == set()


def test_every_way_to_name_a_class_is_found() -> None:
    text = """package org.apache.spark.barograph.plugin
    import org.apache.spark.{SparkContext, SparkEnv => Env}
    import org.apache.spark.rpc._
    import org.apache.spark.barograph.orders.Ledger
    /** org.apache.spark.storage.BlockId */ // org.apache.spark.storage.BlockId
    val name = "org.apache.spark.storage.BlockId"
    val used: org.apache.spark.memory.MemoryManager = null
    """
    assert spark_names(text) == {"SparkContext", "SparkEnv", "rpc._", "memory.MemoryManager"}
    assert {name for name in spark_names(text) if not is_public(name)} == {"SparkEnv", "rpc._", "memory.MemoryManager"}
