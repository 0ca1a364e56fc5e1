"""A broker on a host, used from another one. It is killed and started again there; this machine does not reach it."""

import socket
import sys
import time
from pathlib import Path

import pytest

import barograph
from barograph.engines.spark.cluster.java import find_java
from barograph.engines.spark.cluster.start_signs import StartFailed
from barograph.engines.spark.folders import cache_folder
from barograph.kafka import broker_jars, connector_jars
from barograph.maven import FetchFailed
from barograph.model import Load
from barograph.testing.hosts import open_hosts, why_no_hosts
from barograph.testing.hosts.host import Sight
from barograph.testing.hosts.kafka_on_host import start_broker_on, start_feed_on
from barograph.workloads.replay import Replay

SECONDS = 4.0


@pytest.mark.spark
@pytest.mark.slow
def test_a_feed_on_another_host_writes_on_after_the_broker_was_killed(tmp_path: Path) -> None:
    if (why := why_no_hosts()) is not None:
        pytest.skip(why)
    try:
        broker_jars()
        connector_jars()
    except FetchFailed as error:
        pytest.skip(f"Kafka cannot be fetched: {error}")
    java, package = find_java(), Path(barograph.__file__).parents[1]
    sight = Sight(kept=(Path(sys.prefix), Path(sys.base_prefix), java.home, java.runtime, package, cache_folder()))
    replay = Replay(Load.parse("constant 100").schedule(SECONDS), partitions=2, close_s=SECONDS).options()
    with open_hosts({"here": sight, "there": sight}) as hosts:
        here, there = hosts.by_name.values()
        with start_broker_on(here, tmp_path / "broker.log") as broker:
            assert broker.address.startswith(here.address)
            with pytest.raises(OSError):
                socket.create_connection((here.address, int(broker.address.rpartition(":")[2])), 1.0)
            with start_feed_on(there, tmp_path / "feed.log", "lines", broker, replay) as feed:
                feed.begin(int(time.time() * 1000))
                broker.kill()
                assert not feed.is_done()
                broker.start()
                deadline = time.monotonic() + 100.0
                while not feed.is_done():
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            with (
                pytest.raises(StartFailed, match="TopicExists"),
                start_feed_on(there, tmp_path / "again.log", "lines", broker, replay),
            ):
                pass
    assert hosts.processes() == 0
