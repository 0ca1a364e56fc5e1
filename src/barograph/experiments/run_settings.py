"""The settings of a run, what is refused before anything is started, and the checkpoint folder."""

import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from barograph.config import default
from barograph.config.written.actions import Action, Fault
from barograph.config.written.texts import STANDALONE
from barograph.engines.epoch_length import Recovery
from barograph.engines.spark.cluster.java import find_java
from barograph.engines.spark.cluster.runs import run_of
from barograph.engines.spark.cluster.settings import ClusterSettings, require_free_port
from barograph.engines.spark.log_folder import SPARK
from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.experiments.running.actions import check_actions
from barograph.experiments.steering.steering import Steering
from barograph.experiments.steering.worker_sizes import SEATS
from barograph.kafka import broker_jars, connector_jars
from barograph.maven import FetchFailed
from barograph.model import BadInput, Load, MigrationMode
from barograph.model.checks import require, require_number, require_positive, require_whole
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import Replay
from barograph.workloads.workload import Workload

LEAST_PLAIN_EPOCH_S = 5.0  # Spark's own bound
MASTER_ANSWERS_S = 10.0


def run_cluster() -> ClusterSettings:
    """The cluster of a run whose user says nothing about it."""
    return ClusterSettings(node_cpu=default("run.node-cpu"), seats=SEATS)


@dataclass(frozen=True)
class FromKafka:
    """The inputs are topics. brokers: their addresses; None: a broker is started for the run. client: options of
    Kafka's clients, such as a login. writes: the result goes to a topic too, instead of nowhere."""

    brokers: str | None = None
    writes: bool = False
    client: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run. master: a cluster that is running; None starts one from ``cluster``.

    parallelism: of operators that are not to have the workload's default; after construction, of all operators.
    timeout_s: a row that takes longer is late. in_flight_s: most queueing time in front of an instance; 0: no limit.
    steering: the policy that steers the run; None leaves everything where ``even`` first put it.
    busy_us: CPU microseconds that each row additionally costs an operator.
    migration: how the changes of --at take effect.
    plain: on Spark without the plug-in, where nothing can be changed or steered.
    logs: a folder for the logs of Spark and of the controller; None: Spark's go to standard error.
    restart: when the query is restarted after a failure. query: its priority and nodes; None: the defaults.
    recovery: bounds epochs where no policy sets them; None: they are as long as epoch_s says.
    conf: further settings of the Spark session. properties: a file of such, for a cluster that is not embedded.
    kafka: the query reads topics into which the rows are written when they are due; None: the replay source.
    behind_s: the load starts that long before the query, which begins with that backlog.
    journal: a file for what must outlive the driver; a driver that finds one continues that run.
    """

    workload: Workload
    load: Load
    seconds: float = default("run.seconds")
    parallelism: Mapping[str, int] = field(default_factory=dict)
    epoch_s: float = default("epoch")
    cluster: ClusterSettings = field(default_factory=run_cluster)
    master: str | None = None
    checkpoint: Path | None = None
    actions: tuple[Action, ...] = ()
    lines: LineShape = field(default_factory=LineShape)
    drain_s: float = default("run.drain")
    timeout_s: float = default("timeout")
    in_flight_s: float = default("in-flight")
    steering: Steering | None = None
    journal: Path | None = None
    busy_us: Mapping[str, int] = field(default_factory=dict)
    plain: bool = False
    migration: MigrationMode = MigrationMode.CUT
    logs: Path | None = None
    restart: RestartLimits = field(default_factory=RestartLimits)
    query: QueryOptions | None = None
    recovery: Recovery | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    properties: Path | None = None
    kafka: FromKafka | None = None
    behind_s: float = default("run.behind")

    def __post_init__(self) -> None:
        require_positive("seconds", self.seconds)
        require_number("epoch", self.epoch_s, 1.0)
        require_positive("drain seconds", self.drain_s)
        require_positive("timeout", self.timeout_s)
        require_number("in flight", self.in_flight_s, 0.0)
        require_number("behind", self.behind_s, 0.0)
        text = (
            f"a load of {self.seconds:g} s ends before a query that is {self.behind_s:g} s behind: give more --seconds"
        )
        require(self.behind_s < self.seconds, text)
        self.workload.require_operators("parallelism", self.parallelism)
        for operator, count in self.parallelism.items():
            require_whole(f"parallelism of {operator}", count, 1)
        object.__setattr__(self, "parallelism", {**self.workload.default_parallelism, **self.parallelism})
        self.workload.require_busy("busy work", self.busy_us)
        for operator, micros in self.busy_us.items():
            require_whole(f"busy work of {operator}", micros)

    def spark_log(self, say: Callable[[str], None]) -> Path | None:
        """The file for Spark's output. Where the logs are is said by the first driver of a run only."""
        log = None if self.logs is None else self.logs / SPARK
        if log is not None and not log.exists():
            say(f"logs are in {self.logs}")
        return log

    def inputs(self, start_ms: int) -> tuple[Replay, ...]:
        """The inputs of the run. start_ms: when the load starts, milliseconds since 1970."""
        schedule = self.load.schedule(self.seconds)
        load = Replay(schedule, lines=self.lines, close_s=self.seconds, start_ms=start_ms)
        return self.workload.inputs(load, self.parallelism)

    def results_per_load_row(self) -> int:
        """Rows that leave the query for each row of the load, which every input follows."""
        return len(self.inputs(0)) * self.workload.results_per_row(self.lines)


def check(settings: RunSettings) -> None:
    """Refuse, before anything is started, what cannot work."""
    find_java()
    run = None if settings.master is None else run_of(settings.master)
    if settings.plain:
        require(settings.steering is None, "Spark without the plug-in cannot be steered")
        require(settings.behind_s == 0, "Spark without the plug-in cannot start behind: leave --behind out")
        require(not settings.actions, "Spark without the plug-in cannot move, scale, cut or restart: leave --at out")
        require_number("epoch of Spark alone", settings.epoch_s, LEAST_PLAIN_EPOCH_S)
    if settings.master is not None and run is None:
        check_elsewhere(settings, settings.master)
    else:
        if settings.master is None:
            require_free_port(settings.cluster.port)
        text = "--properties-file is for a cluster that Barograph did not start: leave it out"
        require(settings.properties is None, text)
        cluster = settings.cluster if run is None else run.settings
        slots = dict.fromkeys(cluster.node_names(), cluster.executors)
        check_fits(settings, slots, cluster.nodes * cluster.executors * cluster.seats)
    if settings.kafka is not None:
        check_kafka(settings, settings.kafka, is_elsewhere=settings.master is not None and run is None)
    for action in settings.actions:
        if action.fault in (Fault.KILL_BROKER, Fault.START_BROKER):
            where = f"--at {action.at_s:g}:{action.text}"
            has_broker = settings.kafka is not None and settings.kafka.brokers is None
            require(has_broker, f"{where}: only a broker that was started for the run, by --source kafka, can be ended")
    if settings.checkpoint is not None and settings.journal is None:
        require_empty_and_writable(settings.checkpoint)


def check_elsewhere(settings: RunSettings, master: str) -> None:
    """Of a cluster that is not embedded, what can be said before an application runs there."""
    text = f"--master {master!r} is not that of a standalone cluster: write {STANDALONE}HOST:PORT"
    require(master.startswith(STANDALONE), text)
    require(
        any(map(answers, master.removeprefix(STANDALONE).split(","))),
        f"no cluster answers at {master!r}: 'barograph cluster status' lists those of this machine",
    )
    text = f"policy spark needs nodes of a known size, and those of {master} may have any: leave --master out"
    require(not settings.plain, text)
    require(
        settings.checkpoint is not None,
        f"executors of {master} may be on other machines: name a folder that all of them see with --checkpoint",
    )
    faults = [a for a in settings.actions if a.fault is not None and a.slot is not None]
    if faults:
        raise BadInput(f"--at {faults[0].at_s:g}:{faults[0].text}: processes of {master} cannot be ended from here")
    if settings.properties is not None:
        require(settings.properties.is_file(), f"there is no file {settings.properties} for --properties-file")


def check_kafka(settings: RunSettings, kafka: FromKafka, is_elsewhere: bool) -> None:
    require(not settings.plain, "policy spark reads only the replay source: leave --source out")
    leaves = settings.migration is MigrationMode.RESTART_APP
    ends = leaves or any(a.fault is Fault.KILL_DRIVER for a in settings.actions)
    require(not ends, "the driver writes the topics, so --source kafka does not go with an end of the driver")
    if kafka.brokers is None:
        text = "a broker that is started here is not reached from other machines: give --brokers"
        require(not is_elsewhere, text)
    else:
        text = (
            f"no broker answers at {kafka.brokers!r}: start it, or leave --brokers out, and one is started for the run"
        )
        require(any(map(answers, kafka.brokers.split(","))), text)
    try:
        connector_jars()
        if kafka.brokers is None:
            broker_jars()
    except FetchFailed as error:
        raise BadInput(f"Kafka's jars cannot be had: {error}") from error


def answers(address: str) -> bool:
    """Whether a process takes connections at HOST:PORT."""
    host, _, port = address.strip().rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), MASTER_ANSWERS_S):
            return True
    except (OSError, ValueError, OverflowError):
        return False


def check_fits(settings: RunSettings, slots: Mapping[str, int], seats: int) -> None:
    """slots: workers of each node. seats: of all workers."""
    topology = settings.workload.topology(settings.parallelism)
    count = sum(o.parallelism for o in topology.operators)
    require(count <= seats, f"{count} instances need a seat each and there are {seats} seats")
    check_actions(settings.actions, topology, slots, seats, settings.seconds)


def checkpoint_folder(settings: RunSettings, ending: ExitStack) -> Path:
    """The folder that the user gave, or a temporary one that is removed when ``ending`` closes."""
    if settings.checkpoint is not None:
        return settings.checkpoint
    folder = Path(tempfile.mkdtemp(prefix="barograph-checkpoint-"))
    ending.callback(shutil.rmtree, folder, True)
    return folder


def require_empty_and_writable(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require(not any(folder.iterdir()), f"the checkpoint folder {folder} is not empty: a run needs an empty one")
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadInput(f"the checkpoint folder {folder} cannot be written: {error.strerror}") from error
