"""How Spark's own master and workers are called: programs, options and environment. Nothing is started here.

Java is called directly and not through Spark's shell scripts, which start another Java each to build the command. The
daemons only pass messages, so they get options for a fast start: the C1 compiler, the serial collector, a small heap.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from barograph.engines.spark.cluster.java import Java, pyspark_home, spark_jars
from barograph.engines.spark.cluster.node_limit import ENTER
from barograph.engines.spark.cluster.processes import NODE_MARK, RUN_MARK
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.cluster.settings import MASTER_ADDRESS
from barograph.engines.spark.security.secret import DAEMONS_FILE, make_secret

MASTER = "master"
RECOVERY = "recovery"  # the folder in which a master keeps what the next one must know
# A worker or an application that has not answered a new master by then is dropped. All answer within a second, unless
# they died with the old one; Spark would wait a minute for those and start no executor meanwhile.
_RECOVERY_S = 5
_OPENED = ("java.lang", "java.nio", "java.net", "java.util", "java.util.concurrent")
_JVM = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Xms32m",
    "-Xmx256m",
    "-Xss512k",
)
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
logger.jetty.name = org.sparkproject.jetty
logger.jetty.level = warn
"""


@dataclass(frozen=True, slots=True)
class Launch:
    """One process to start."""

    command: tuple[str, ...]
    environment: dict[str, str]
    log: Path


def prepare(run: Run) -> None:
    """The folders, the secret, and the one configuration file that master, workers and executors share."""
    for folder in ("conf", "logs", "work", "local", "tmp", RECOVERY):
        (run.folder / folder).mkdir(mode=0o700, exist_ok=True)
    make_secret(run.folder)
    logging = run.folder / "conf" / "log4j2.properties"
    logging.write_text(_LOGGING)
    logging.chmod(0o600)


def master_launch(run: Run, java: Java, archive: Sequence[str] = ()) -> Launch:
    # A master that is started again has the address of the one before.
    port = urlsplit(run.master).port or run.settings.port or 0
    options = [
        # Without it a new master would not know the application, and would end the executors that workers report.
        "-Dspark.deploy.recoveryMode=FILESYSTEM",
        f"-Dspark.deploy.recoveryDirectory={run.folder / RECOVERY}",
        f"-Dspark.deploy.recoveryTimeout={_RECOVERY_S}",
        "-Dspark.port.maxRetries=0",  # a port in use is an error, not a reason to take the next one
        "-Dspark.master.rest.enabled=false",
    ]
    arguments = ["--host", MASTER_ADDRESS, "--port", str(port), "--webui-port", "0", *_secret(run)]
    command = _java(run, java, [*archive, *options], "org.apache.spark.deploy.master.Master", arguments)
    return Launch(command, _environment(run, java, MASTER, MASTER_ADDRESS), log_of(run, MASTER))


def worker_launch(run: Run, java: Java, node: str, archive: Sequence[str] = ()) -> Launch:
    address = run.settings.addresses()[node]
    seats = run.settings.seats * run.settings.executors
    # Cores limit how many executors a node takes; so much memory is offered that memory never does.
    memory_mb = 4 * run.settings.memory_mb * run.settings.executors
    arguments = ["--host", address, "--port", "0", "--webui-port", "0", *_secret(run)]
    arguments += ["--cores", str(seats), "--memory", f"{memory_mb}m"]
    arguments += ["--work-dir", str(run.folder / "work" / node), run.master]
    command = _java(run, java, archive, "org.apache.spark.deploy.worker.Worker", arguments)
    if run.groups is not None:
        command = ("sh", "-c", ENTER, "sh", str(run.groups.node(node)), *command)
    return Launch(command, _environment(run, java, node, address), log_of(run, node))


def log_of(run: Run, name: str) -> Path:
    return run.folder / "logs" / f"{name}.log"


def class_path() -> str:
    return ":".join(str(jar) for jar in spark_jars())


def _secret(run: Run) -> tuple[str, str]:
    return ("--properties-file", str(run.folder / DAEMONS_FILE))


def _java(run: Run, java: Java, options: Sequence[str], main: str, arguments: Sequence[str]) -> tuple[str, ...]:
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    own = [
        f"-Dlog4j2.configurationFile={run.folder / 'conf' / 'log4j2.properties'}",
        f"-Djava.io.tmpdir={run.folder / 'tmp'}",
    ]
    return (str(java.command), *_JVM, *opened, *own, *options, "-cp", class_path(), main, *arguments)


def _environment(run: Run, java: Java, name: str, address: str) -> dict[str, str]:
    # Settings of another Spark installation must not leak in.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "BAROGRAPH_"))}
    local = run.folder / "local" / name
    local.mkdir(mode=0o700, exist_ok=True)
    return inherited | {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(pyspark_home()),
        "SPARK_SCALA_VERSION": scala_version(),  # a worker needs it to build an executor's command
        "SPARK_CONF_DIR": str(run.folder / "conf"),
        "SPARK_LOCAL_IP": address,  # also keeps the web pages off the network
        "SPARK_LOCAL_DIRS": str(local),
        RUN_MARK: run.run_id,
        NODE_MARK: name,
    }


def scala_version() -> str:
    core = next(jar.name for jar in spark_jars() if jar.name.startswith("spark-core_"))
    return core.removeprefix("spark-core_").partition("-")[0]
