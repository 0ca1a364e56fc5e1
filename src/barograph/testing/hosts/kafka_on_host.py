"""A Kafka broker on a host, and a process that writes the rows of a load into a topic from a host.

Both are those of ``barograph.kafka``, started by a program in the host (``testing/kafka_program.py``), since addresses,
process ids and /tmp are the host's own. They end with the block, and with the host.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import barograph
from barograph.engines.spark.cluster.java import find_java
from barograph.engines.spark.cluster.start_signs import StartFailed, tail
from barograph.engines.spark.folders import cache_folder
from barograph.kafka import broker_jars, connector_jars
from barograph.testing.hosts.host import Host

END_TIMEOUT_S = 60.0


class HostProgram:
    """``kafka_program.py`` in a host. first: what it said when it was ready. log: of its errors, on the machine."""

    def __init__(self, host: Host, log: Path, what: str, options: Mapping[str, Any]) -> None:
        broker_jars()  # a host has no way to a repository: what is missing is fetched here
        connector_jars()
        known = {
            "PYTHONPATH": str(Path(barograph.__file__).parents[1]), "JAVA_HOME": str(find_java().home),
            "BAROGRAPH_STATE": "/tmp/state", "BAROGRAPH_CACHE": str(cache_folder()),  # /tmp is the host's own
        }  # fmt: skip
        self._log = log
        command = [sys.executable, "-m", "barograph.testing.kafka_program", what, json.dumps(dict(options))]
        self._program = host.start(command, log, known, pipes=True)
        self.first = self._answer()

    def ask(self, order: str) -> dict[str, Any]:
        """Its answer; StartFailed where it has ended. What it waits for has deadlines of its own."""
        assert self._program.stdin is not None
        self._program.stdin.write(f"{order}\n")
        self._program.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """It ends what it has started. Where the host is lost, it has ended already."""
        assert self._program.stdin is not None and self._program.stdout is not None
        try:
            self._program.stdin.close()
        finally:
            try:
                self._program.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._program.kill()
                self._program.wait()
            self._program.stdout.close()

    def _answer(self) -> dict[str, Any]:
        assert self._program.stdout is not None
        line = self._program.stdout.readline()
        if not line:
            raise StartFailed(f"the program ended:\n{tail(self._log)}")
        answer: dict[str, Any] = json.loads(line)
        return answer


class BrokerOnHost:
    """address, client: as programs on all hosts reach it."""

    def __init__(self, program: HostProgram) -> None:
        self._program = program
        self.address: str = program.first["address"]
        self.client: dict[str, str] = program.first["client"]

    def kill(self) -> None:
        """SIGKILL, in the host."""
        self._program.ask("kill")

    def start(self) -> None:
        """Again, at the same address, with the data it had. Returns when it serves."""
        self._program.ask("start")


class FeedOnHost:
    """topic: its name. It is there, and empty until ``begin``."""

    def __init__(self, program: HostProgram, topic: str) -> None:
        self._program, self.topic = program, topic

    def begin(self, start_ms: int) -> None:
        self._program.ask(f"begin {start_ms}")

    def is_done(self) -> bool:
        """Whether all rows are in the topic. StartFailed with the reason where it ended before that."""
        state = self._program.ask("state")
        if state["failed"]:
            raise StartFailed(state["failed"])
        return bool(state["done"])


@contextmanager
def start_broker_on(host: Host, log: Path, partitions: int = 2) -> Iterator[BrokerOnHost]:
    program = HostProgram(host, log, "broker", {"host": host.address, "partitions": partitions})
    try:
        yield BrokerOnHost(program)
    finally:
        program.close()


@contextmanager
def start_feed_on(
    host: Host, log: Path, topic: str, broker: BrokerOnHost, replay: Mapping[str, str]
) -> Iterator[FeedOnHost]:
    """replay: options of the replay source, without its start."""
    options = {"topic": topic, "brokers": broker.address, "client": broker.client, "replay": dict(replay)}
    program = HostProgram(host, log, "feed", options)
    try:
        yield FeedOnHost(program, topic)
    finally:
        program.close()
