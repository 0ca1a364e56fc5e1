"""An unchanged script from topic to topic under ``barograph submit --act`` on three hosts, the broker on a fifth: the
load rises and falls, a host is lost, the broker is killed and started again, and every window's last count is right."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fetched import needs_kafka
from tests.submit.submitted_on_hosts import SubmittedOnHosts

from barograph.config import default
from barograph.kafka import connector_jars
from barograph.model import Load
from barograph.testing.hosts import why_no_hosts
from barograph.testing.hosts.host import SHARED
from barograph.testing.hosts.kafka_on_host import BrokerOnHost, FeedOnHost, start_broker_on, start_feed_on
from barograph.testing.hosts.spark_on_hosts import SparkOnHosts, open_spark_on_hosts
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import Replay

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "kafka_windowed_word_count.py"
VERDICT = Path(__file__).with_name("window_topics.py")
CLIENT = Path("/tmp/client.properties")  # of the driver's host
# Five times as much and back; the last part is as long as a lost host and a broker need.
LOAD = "ramp 0s=120 30s=120 40s=600 80s=600 90s=120 900s=120"
FALLEN_S = 95.0
CAUGHT_UP_ROWS = 600
OUTAGE_S = 15.0
# Each word is two records of the output: it is in two windows.
REPLAY = Replay(Load.parse(LOAD).schedule(900.0), partitions=2, lines=LineShape(words_per_line=3, vocabulary=300))


@dataclass(frozen=True)
class Stage:
    cluster: SparkOnHosts
    broker: BrokerOnHost
    feed: FeedOnHost
    ending: ExitStack
    """Of the feed alone."""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """The cluster asks for a secret."""
    if (why := why_no_hosts()) is not None:
        pytest.skip(why)
    needs_kafka()
    with open_spark_on_hosts(programs=[ROOT], is_secret=True) as cluster, ExitStack() as ending:
        kafka = cluster.add_host("kafka")
        broker = ending.enter_context(start_broker_on(kafka, tmp_path / "broker.log"))
        feeding = ending.enter_context(ExitStack())
        feed = feeding.enter_context(start_feed_on(kafka, tmp_path / "feed.log", "lines", broker, REPLAY.options()))
        yield Stage(cluster, broker, feed, feeding)


@pytest.mark.spark
@pytest.mark.slow
def test_from_topic_to_topic_every_last_count_is_right_although_a_host_and_the_broker_are_lost(
    stage: Stage, tmp_path: Path
) -> None:
    cluster, broker = stage.cluster, stage.broker
    jars = ",".join(map(str, connector_jars()))
    # Within a quota every instance has a limit; without one, a topology that is alone is not limited.
    settings = ("spark.sql.shuffle.partitions=2", "spark.barograph.query.quotaCpu=180")
    options = ["--act", "--jars", jars, *(word for setting in settings for word in ("--conf", setting))]
    client = {"bootstrap.servers": broker.address, **broker.client}
    (cluster.driver.folder / "tmp" / CLIENT.name).write_text("".join(f"{k}={v}\n" for k, v in client.items()))
    arguments = [str(CLIENT), "lines", "counts", str(SHARED / "checkpoint")]
    script = SubmittedOnHosts(cluster, tmp_path / "out", options, SCRIPT, arguments)
    script.settle(lambda: bool(script.topology()), 300.0)
    assert "act: queries are kept; adaptive acts" in script.said()
    begun_s, start_ms = time.monotonic(), int(time.time() * 1000) + 500
    stage.feed.begin(start_ms)

    def has_caught_up() -> bool:
        now = script.topology()
        behind = now.get("backlog_rows")
        return bool(now.get("in_rows_s")) and behind is not None and behind < CAUGHT_UP_ROWS

    script.settle(has_caught_up, 300.0)
    script.settle(lambda: bool(script.applied("moves") or script.applied("rescales")), 300.0)
    script.settle(lambda: len(script.topology()["limits"]) == sum(script.topology()["operators"].values()), 60.0)
    assert script.unlimited_hosts() == {}

    script.lose_a_used_host()
    script.settle(has_caught_up, 300.0)
    broker.kill()
    killed_s = time.monotonic()
    script.settle(lambda: time.monotonic() - killed_s > OUTAGE_S, OUTAGE_S + 60.0)
    broker.start()
    script.settle(has_caught_up, 300.0)
    script.settle(lambda: time.monotonic() - begun_s > FALLEN_S, FALLEN_S)
    assert not stage.feed.is_done()
    stage.ending.close()
    script.settle(lambda: script.topology()["backlog_rows"] == 0, 120.0)
    script.go_on(epochs=0, timeout_s=default("epochs.most") + 60.0)  # without rows an epoch lasts as long as it may
    restarts = [(r["cause"], r["down_s"]) for r in script.topology()["restarts"]]
    script.end()

    load = {**REPLAY.options(), "start_ms": str(start_ms)}
    given = {"topic": "lines", "output": "counts", "client": client, "load": load, "jars": jars.split(",")}
    verdict = json.loads(cluster.driver.run([sys.executable, str(VERDICT), json.dumps(given)], 300.0).splitlines()[-1])
    assert verdict["rows"] > 20_000
    assert verdict["counts"] > 3_000
    assert verdict["records"] >= 6 * verdict["rows"], "each row in two windows, at least once"
    assert verdict["in_one_partition"]
    assert verdict["wrong"] == {}, restarts
