"""``barograph run`` from a topic: the verdict is as exact as from the replay source, also if the broker is killed."""

import json
import os
import re
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from tests.fetched import needs_kafka

from barograph.engines.spark.folders import state_folder
from barograph.kafka import Login, start_broker
from barograph.kafka.feed import explained

COMMAND = [sys.executable, "-m", "barograph.cli.main", "run", "wordcount", "--source", "kafka", "--node-cpu", "2"]


@pytest.fixture(scope="module")
def kafka() -> None:
    needs_kafka()


def barograph_run(*more: str, timeout_s: float = 800.0) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [*COMMAND, *more], env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )


class Eavesdropper:
    """Reads what any user can, and all logs, for as long as its block lasts. told: logs with a password in them.
    listened: to its end."""

    def __init__(self, state: Path) -> None:
        self._state, self._ended = state, threading.Event()
        self.passwords: set[str] = set()
        self.commands: set[str] = set()
        self.logs: set[Path] = set()
        self.told: set[Path] = set()
        self.listened = False
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> "Eavesdropper":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _listen(self) -> None:
        while not self._ended.wait(0.5):
            for process in Path("/proc").iterdir():
                with suppress(OSError):
                    if process.name.isdecimal():
                        self.commands.add((process / "cmdline").read_text(errors="replace"))
            for folder, _, names in os.walk(self._state):  # which goes on where a folder is removed meanwhile
                for name in names:
                    with suppress(OSError):
                        self._look_at(Path(folder) / name)
        self.listened = True

    def _look_at(self, file: Path) -> None:
        if file.name == "server.properties":
            self.passwords |= set(re.findall(r' password="(\w+)"', file.read_text()))
        elif file.suffix == ".log" or file.name in ("stdout", "stderr", "out", "err"):
            self.logs.add(file)
            content = file.read_text(errors="replace")
            if any(password in content for password in self.passwords):
                self.told.add(file)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("kafka")
def test_every_row_is_counted_once_although_the_broker_is_killed_and_an_instance_moves() -> None:
    with Eavesdropper(state_folder()) as listening:
        done = barograph_run(
            "--load", "steps 0s=300 10s=900 15s=300", "--seconds", "30", "--epoch", "8s", "--format", "json",
            "--sink", "kafka", "--at", "8:kill broker", "--at", "20:move count/1=node-1",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert listening.listened
    assert len(listening.passwords) == 2  # of clients and of the quorum
    assert any("kafka.Kafka" in command for command in listening.commands)
    assert {log.name for log in listening.logs} >= {"broker.log", "err", "stderr", "master.log"}
    heard = [*listening.commands, done.stdout, done.stderr]
    assert [words for words in heard if any(password in words for password in listening.passwords)] == []
    assert listening.told == set(), "no password is in a log"
    report = json.loads(done.stdout)
    assert (report["rows"]["lost"], report["rows"]["counted_twice"], report["rows"]["checksum_ok"]) == (0, 0, True)
    assert report["lines"] == {"due": 12000, "undrained": 0}
    assert report["rows"]["due"] == 8 * 12000
    assert [a["ok"] for a in report["actions"]] == [True, True]
    assert report["latency_ms"]["due"]["p50"] > 0
    out = report["output_topic"]
    assert (out["missing"], out["wrong"]) == (0, 0)
    assert out["rows"] - out["repeated"] == report["rows"]["due"], "at least once"
    assert any(seen is not None for seen in report["by_second"]["seen_backlog_rows"])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("kafka")
def test_wrong_credentials_are_one_sentence(tmp_path: Path) -> None:
    login = tmp_path / "client.properties"
    wrong = Login("reader", "wrong").options()
    login.write_text("".join(f"{name}={value}\n" for name, value in wrong.items()))
    with start_broker(login=Login("reader", "right")) as broker:
        done = barograph_run("--brokers", broker.address, "--brokers-file", str(login))
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert f"cannot be made at {broker.address}: the Kafka broker refuses the login" in said
    assert 'wrong"' not in said, "no password"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("kafka")
def test_a_broker_with_a_login_is_read_from_behind_and_written_to(tmp_path: Path) -> None:
    right = Login("reader", "r1ght")
    client = tmp_path / "client.properties"
    client.write_text("".join(f"{name}={value}\n" for name, value in right.options().items()))
    with start_broker(login=right) as broker:
        done = barograph_run(
            "--brokers", broker.address, "--brokers-file", str(client), "--sink", "kafka", "--behind", "15s",
            "--load", "constant 1000", "--seconds", "40", "--epoch", "8s", "--format", "json",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["lines"] == {"due": 40000, "undrained": 0}
    assert report["rows"]["due"] == 8 * 40000
    assert (report["rows"]["lost"], report["rows"]["counted_twice"], report["rows"]["checksum_ok"]) == (0, 0, True)
    out = report["output_topic"]
    assert out == {"rows": report["rows"]["due"], "missing": 0, "repeated": 0, "wrong": 0}, "nothing failed"
    seconds = report["by_second"]
    first = seconds["all_read_rows"][0] + seconds["seen_backlog_rows"][0]
    assert first >= (seconds["at_s"][0] - 1.0) * 1000 >= 10_000, "the backlog was there before the query, and is seen"


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("SaslAuthenticationException: no", "the Kafka broker refuses the login: correct user and password"),
        ("TimeoutException: late", "no Kafka broker answers"),
        ("SomethingElse: odd", "SomethingElse: odd"),
    ],
)
def test_errors_of_clients_are_explained(why: str, said: str) -> None:
    assert explained(why).startswith(said)
