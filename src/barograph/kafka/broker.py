"""A Kafka broker on this machine: one node that is its own controller (KRaft), for tests and demonstrations.

It keeps its data in a temporary folder, can be killed and started again with that data, and ends with the process that
started it, whatever happens to that process. Each listener asks for a login, since every user of the machine reaches
loopback. It is not for production: one replica, and passwords cross loopback in plain text, where only root sees them.
"""

import re
import secrets
import signal
import socket
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from barograph.engines.spark.cluster.java import find_java
from barograph.engines.spark.cluster.start_signs import StartFailed, tail
from barograph.engines.spark.security.private_files import append_private, write_private
from barograph.guardian import Guarded, guarded
from barograph.kafka.fetched import broker_jars
from barograph.model.checks import require

START_TIMEOUT_S = 120.0
_POLL_S = 0.02
_PASSWORD_BYTES = 24
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_UP = re.compile(rb"Kafka Server started")
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xms64m", "-Xmx256m")
_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
"""


@dataclass(frozen=True, slots=True)
class Login:
    """The one user of a broker, who logs in by SASL/PLAIN. Both are letters and digits."""

    user: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        require(self.user.isalnum() and self.password.isalnum(), "a broker's user and password are letters and digits")

    @classmethod
    def random(cls, user: str) -> "Login":
        return cls(user, secrets.token_hex(_PASSWORD_BYTES))

    def options(self) -> dict[str, str]:
        """For a client of the broker; sources and sinks of Spark take them with ``kafka.`` in front."""
        return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{self._known};"}

    def accepted(self) -> str:
        """For a listener: which users it lets in, and as which the broker itself connects to it."""
        return f'{self._known} user_{self.user}="{self.password}";'

    @property
    def _known(self) -> str:
        return f'{_MODULE} required username="{self.user}" password="{self.password}"'


class Broker:
    """Made by ``start_broker``. address: host and port, as ``kafka.bootstrap.servers`` takes it; it stays the same.

    login: of its only user. controllers: host and port of the listener of the quorum, which has another login, known to
    the broker alone. properties: its settings. client: what a client needs, as a file; its owner alone reads both."""

    def __init__(self, home: Guarded, host: str, partitions: int, login: Login) -> None:
        ports = _free_ports(host, 2)
        self.address, self.controllers = (f"{host}:{port}" for port in ports)
        self.login = login
        self._home = home
        self._child: subprocess.Popen[bytes] | None = None
        folder = home.folder
        write_private(folder / "logging.properties", _LOGGING)
        self.properties, self.client = folder / "server.properties", folder / "client.properties"
        write_private(self.properties, _lines(_properties(folder, host, ports, partitions, login)))
        write_private(self.client, _lines(login.options()))
        java = find_java()
        self._java = (
            str(java.command), *_JVM, f"-Dlog4j2.configurationFile={folder / 'logging.properties'}",
            "-cp", ":".join(map(str, broker_jars())),
        )  # fmt: skip
        # A cluster id is 16 bytes in this alphabet; the first is 0: a text that begins with - would be an option.
        self._cluster = urlsafe_b64encode(bytes(1) + secrets.token_bytes(15)).decode().rstrip("=")

    @property
    def log(self) -> Path:
        return self._home.folder / "broker.log"

    @property
    def pid(self) -> int | None:
        """Of its process; None while it is down."""
        return None if self._child is None else self._child.pid

    def format(self) -> None:
        """Prepare the data folder, once."""
        done = self._run(["kafka.tools.StorageTool", "format", "-t", self._cluster, "-c", str(self.properties)])
        if done.wait(START_TIMEOUT_S) != 0:
            raise StartFailed(f"the broker's data folder could not be prepared:\n{tail(self.log)}")

    def start(self) -> None:
        """Start it with the data it has. Returns when it serves."""
        require(self._child is None, f"the broker at {self.address} is up already")
        offset = self.log.stat().st_size
        self._child = self._run(["kafka.Kafka", str(self.properties)])
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            ended = self._child.poll() is not None  # before the log is read, so that its last lines are not missed
            with self.log.open("rb") as log:
                log.seek(offset)
                if _UP.search(log.read()):
                    return
            if ended or time.monotonic() > deadline:
                self.kill()
                raise StartFailed(f"the broker did not start:\n{tail(self.log)}")
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """SIGKILL. What was acknowledged is there when it is started again, as long as the machine stays up."""
        if self._child is not None:
            self._child.send_signal(signal.SIGKILL)
            self._child.wait()
            self._child = None

    def _run(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        with append_private(self.log) as log:
            return subprocess.Popen(
                [*self._java, *arguments], env={"PATH": "/usr/bin:/bin", **self._home.mark},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._home.folder, start_new_session=True,
                umask=0o077,
            )  # fmt: skip


@contextmanager
def start_broker(host: str = "127.0.0.1", partitions: int = 2, login: Login | None = None) -> Iterator[Broker]:
    """A broker that serves until the block ends. partitions: of topics, which are created when they are first used.
    login: of its only user; None: a random one, which is in ``Broker.login``.

    FetchFailed where its jars cannot be had, StartFailed where it does not start.
    """
    with guarded("kafka") as home:
        broker = Broker(home, host, partitions, login or Login.random("barograph"))
        broker.format()
        broker.start()
        try:
            yield broker
        finally:
            broker.kill()


def _properties(folder: Path, host: str, ports: Sequence[int], partitions: int, login: Login) -> dict[str, object]:
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{host}:{ports[1]}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "BROKER:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "BROKER",
        "listeners": f"BROKER://{host}:{ports[0]},CONTROLLER://{host}:{ports[1]}",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.broker.plain.sasl.jaas.config": login.accepted(),
        # Clients have no business in the quorum, where the broker could be told anything.
        "listener.name.controller.plain.sasl.jaas.config": Login.random("controller").accepted(),
        "log.dirs": folder / "data",
        "num.partitions": partitions,
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        # Without this a broker that was killed waits until its own earlier session has timed out (9 s).
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 1000,
    }


def _lines(settings: Mapping[str, object]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _free_ports(host: str, count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((host, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
