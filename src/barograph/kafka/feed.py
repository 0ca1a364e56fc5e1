"""A process that writes the rows of a load into a topic, each when it is due (``jvm/source/TopicFeed.scala``).

It ends with its block, or with the process that started it. What the rows are is decided elsewhere.
"""

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from barograph.engines.spark.cluster.java import find_java, spark_jars
from barograph.engines.spark.cluster.start_signs import tail
from barograph.engines.spark.conf import WORKLOADS_JAR, plugin_jar
from barograph.engines.spark.query.failures.kafka_errors import kafka_error
from barograph.engines.spark.security.private_files import append_private, write_private
from barograph.guardian import Guarded, guarded
from barograph.kafka.fetched import connector_jars
from barograph.model import BadInput

READY_TIMEOUT_S = 120.0
_POLL_S = 0.05
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx256m")
_MAIN = "org.apache.spark.barograph.source.TopicFeed"


class Feed:
    """Made by ``start_feed``. topic: its name."""

    def __init__(self, home: Guarded, topic: str, brokers: str, client: Mapping[str, str], replay: Mapping[str, str]):
        self.topic, self.brokers = topic, brokers
        self._out, self._err = home.folder / "out", home.folder / "err"
        settings = {"topic": topic, "kafka.bootstrap.servers": brokers}
        settings |= {f"kafka.{name}": value for name, value in client.items()}
        settings |= {f"replay.{name}": value for name, value in replay.items()}
        # A file, because every user of the machine can read a command line, and a client's options may have a password.
        properties = home.folder / "feed.properties"
        write_private(properties, "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items()))
        jars = (plugin_jar(), WORKLOADS_JAR, *connector_jars(), *spark_jars())
        command = [str(find_java().command), *_JVM, "-cp", ":".join(map(str, jars)), _MAIN, str(properties)]
        with append_private(self._out) as out, append_private(self._err) as err:
            self._child = subprocess.Popen(
                command, env={"PATH": "/usr/bin:/bin", **home.mark}, stdin=subprocess.PIPE, stdout=out, stderr=err,
                cwd=home.folder, start_new_session=True, umask=0o077, bufsize=0,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._child.pid

    def await_ready(self) -> None:
        """Until the topic is there. BadInput with the broker's reason where it cannot be made."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._says("ready"):
            if self.failed() or time.monotonic() > deadline:
                why = self.failed() or f"nothing was heard of the broker within {READY_TIMEOUT_S:g} s"
                raise BadInput(f"the topic {self.topic} cannot be made at {self.brokers}: {explained(why)}")
            time.sleep(_POLL_S)

    def begin(self, start_ms: int) -> None:
        """The load starts then, in milliseconds since 1970. That the process has ended meanwhile, ``failed`` says."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):
            self._child.stdin.write(f"{start_ms}\n".encode())

    def has_caught_up(self) -> bool:
        """Whether all rows that were due before are in the topic, from then on each when it is due."""
        return self._says("caught up") or self.is_done()

    def is_done(self) -> bool:
        """Whether all rows are in the topic."""
        return self._says("done")

    def failed(self) -> str:
        """Why it ended before that; empty where it did not."""
        if self._child.poll() is None or self._says("done"):
            return ""
        said = [line for line in _lines(self._err) if line.startswith("feed: ")]
        return said[-1].removeprefix("feed: ") if said else f"its feed ended:\n{tail(self._err)}"

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.kill()
        self._child.wait()
        self._child.stdin.close()

    def _says(self, word: str) -> bool:
        return word in _lines(self._out)


@contextmanager
def start_feed(topic: str, brokers: str, client: Mapping[str, str], replay: Mapping[str, str]) -> Iterator[Feed]:
    """client: options of Kafka's clients, such as a login. replay: options of the replay source, without its start."""
    with guarded("feed") as home:
        feed = Feed(home, topic, brokers, client, replay)
        try:
            yield feed
        finally:
            feed.close()


def explained(why: str) -> str:
    """With what a user can do about it. why: the name of an exception of Kafka's clients, and its message."""
    found = kafka_error(why, has_run=False)
    return why if found is None else f"{found.text} ({why})"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()
