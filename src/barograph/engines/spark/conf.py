"""The Spark settings that Barograph needs. Any Spark 4.3 application can use them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from barograph.config import default
from barograph.model import BadInput

JARS = Path(__file__).parent / "jars"
PLUGIN_JAR = JARS / "barograph-plugin.jar"
# The replay source, the timed sink and busy work: only runs of workloads load it, and it needs the plug-in's jar.
WORKLOADS_JAR = JARS / "barograph-workloads.jar"

# Rows in flight between two instances are bounded in time, so that a cut under overload does not wait long for them and
# the backlog stays at the source, where it is measured; and in memory, which only very fast operators fill.
IN_FLIGHT_MS = round(default("in-flight") * 1000)
IN_FLIGHT_BYTES = 4 << 20
# Twice Spark's default: fewer messages under load. At low load a buffer is sent after some milliseconds anyway.
BUFFER_BYTES = 64 << 10

# Read by every process that gets Hadoop's settings, also by one that has no jar of ours.
LOCAL_FILES = "spark.hadoop.fs.AbstractFileSystem.file.impl"


def plugin_jar() -> Path:
    if not PLUGIN_JAR.exists():
        raise BadInput("the plug-in is not built: run make, or install the barograph wheel, which carries it")
    return PLUGIN_JAR


def class_path(*jars: Path) -> dict[str, str]:
    path = ":".join(map(str, jars))
    return {"spark.driver.extraClassPath": path, "spark.executor.extraClassPath": path}


def workloads_settings(ship: bool = False, more: Iterable[Path] = ()) -> dict[str, str]:
    """The jars that a workload needs, and more, shipped or for the class path; the settings that load the plug-in are
    not among these."""
    if not WORKLOADS_JAR.exists():
        raise BadInput("the workloads are not built: run make, or install the barograph wheel, which carries them")
    jars = (plugin_jar(), WORKLOADS_JAR, *more)
    return shipped(*jars) if ship else class_path(*jars)


def real_time_settings() -> dict[str, str]:
    """What Spark's real-time mode needs, with or without Barograph."""
    return {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    }


def plain_settings() -> dict[str, str]:
    """Spark without Barograph: only its own settings, and the jars of the replay source and the timed sink on the class
    path. The plug-in does not run."""
    return {
        **real_time_settings(),
        **workloads_settings(),
        # Spark's list of allowed sinks has only its own.
        "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    }


def shipped(*jars: Path) -> dict[str, str]:
    """The driver sends these jars to its executors, wherever they run."""
    return {"spark.jars": ",".join(map(str, jars))}


def plugin_settings(ship: bool = False) -> dict[str, str]:
    """The hooks of the plug-in, and the settings that Barograph recommends.

    ship: executors get the jar from the driver. Without it they find it under the same path as the driver, as those of
    an embedded cluster do.
    """
    return {
        **real_time_settings(),
        **(shipped(plugin_jar()) if ship else class_path(plugin_jar())),
        "spark.sql.extensions": "org.apache.spark.barograph.BarographExtensions",
        "spark.plugins": "org.apache.spark.barograph.BarographPlugin",
        "spark.shuffle.manager.incremental": "org.apache.spark.barograph.MeteredShuffleManager",
        # Spark's own check would refuse our plan nodes; the planner rule makes the same check on the original plan.
        "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
        "spark.sql.streaming.realTimeMode.minBatchDuration": "1000",
        # Else Spark refuses a stateless query with a sink that it does not know, among them ours. It would also write
        # the logs of stateless queries while it plans the next epoch; planning waits for them anyway.
        "spark.sql.streaming.realTimeMode.asyncProgressTrackingByDefault.enabled": "false",
        # Hadoop starts a chmod and a readlink for every checkpoint file on a local disk; see QuickLocalFs.scala.
        LOCAL_FILES: "org.apache.spark.barograph.QuickLocalFs",
        # One driver at a time writes to a checkpoint; see docs/operating/lease.md.
        "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.barograph.FencedCheckpointFiles",
        "spark.barograph.leasePatienceMs": str(round(default("lease.patience") * 1000)),
        # An executor that is told to end runs on until its instances are elsewhere; see docs/operating/nodes.md.
        "spark.decommission.enabled": "true",
        # An ordered seat is normally free at once; this is for a seat that a batch task holds for a moment.
        "spark.locality.wait": "3s",
        **tuned_settings(),
    }


def without_local_files(settings: Mapping[str, str]) -> dict[str, str]:
    """For clusters whose own processes read Hadoop's settings and have no jar of ours, such as YARN's application
    master, which would ask for a class that it does not have."""
    return {key: value for key, value in settings.items() if key != LOCAL_FILES}


def tuned_settings() -> dict[str, str]:
    """Bounded rows in flight, changelog checkpoints of state, and a short buffer wait."""
    return {
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "5",
        "spark.shuffle.streaming.networkBufferSize": str(BUFFER_BYTES),
        "spark.shuffle.streaming.readerMaxMemory": str(IN_FLIGHT_BYTES),
        "spark.shuffle.streaming.writerMaxMemory": str(IN_FLIGHT_BYTES),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.barograph.inFlightMs": str(IN_FLIGHT_MS),
    }


def in_flight(seconds: float) -> dict[str, str]:
    """The maximum queueing time in front of an instance; 0: no bound in time."""
    return {"spark.barograph.inFlightMs": str(round(seconds * 1000))}


def enforcing(way: str) -> dict[str, str]:
    """How executors hold instances to their CPU limits: auto, cgroup, cooperative or off."""
    return {"spark.barograph.enforce": way}


def merged(*parts: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in parts:
        found.update(part)
    return found
