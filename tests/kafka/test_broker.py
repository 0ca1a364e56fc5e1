"""A real broker, fetched once."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fetched import needs_kafka

from barograph.kafka import start_broker
from barograph.kafka.broker import Broker
from barograph.model import BadInput

PROGRAM = Path(__file__).with_name("counting_a_topic.py")


@pytest.fixture(scope="module", autouse=True)
def jars() -> None:
    needs_kafka()


def serves(broker: Broker) -> bool:
    host, port = broker.address.split(":")
    try:
        with socket.create_connection((host, int(port)), 5.0):
            return True
    except OSError:
        return False


@pytest.mark.spark
@pytest.mark.limit(240)  # it starts Java three times; 9 s on an idle machine
def test_a_broker_starts_is_killed_starts_again_and_leaves_nothing() -> None:
    with start_broker() as broker:
        assert serves(broker)
        with pytest.raises(BadInput, match="is up already"):
            broker.start()
        first = broker.pid
        assert first is not None
        broker.kill()
        assert broker.pid is None
        assert not serves(broker)
        broker.start()
        assert serves(broker), "at the same address"
        folder, last = broker.log.parent, broker.pid
        assert last is not None
        assert last != first
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(last, signal.SIG_DFL)


@pytest.mark.spark
@pytest.mark.slow
def test_a_topic_is_counted_and_its_backlog_seen_behind_a_password_and_over_an_outage(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["active"]
    assert found["counts"] == found["expected"], "every row once"
    # Which call notices first decides whether it is said in our words or in the connector's.
    words = ("no Kafka broker answers", "org.apache.kafka.common.errors.TimeoutException")
    assert any(word in cause for word in words for cause in found["deaths"])
    assert all(cause.startswith("something it needs is not available") for cause in found["deaths"])
    assert "backlog 0," in found["table"], "known, and nothing is left to read"
    assert found["behind"] == {"backlog": 400, "arrived": 400, "read": 0}, "rows arrive when they are produced"
    assert found["caught_up"] == {"arrived": 400, "read": 400}
    nothing, much = found["nothing_to_read_s"], found["much_to_read_s"]
    assert nothing["idle_s"] > 0.5 * sum(nothing.values()) > 0.0, "waiting in a poll is idle; for a core, busy"
    assert much["busy_s"] > 0.0, "a call that waits for a broker while rows are there is busy"
    assert much["idle_s"] < 0.2 * sum(much.values())
    assert found["grown"] == {"arrived": 0, "read": 0}, "partitions that come in another order bring no row"
    assert found["grown_and_filled"] == {"arrived": 300, "read": 300}
    assert found["looks_took_s"] < 30.0, "a broker that is away stalls no look"
