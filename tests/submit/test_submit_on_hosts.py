"""An unchanged script under ``barograph submit --act`` on three hosts: it is scaled and moved, and outlives a host."""

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barograph.model import Load
from barograph.model.loads.schedule import encode
from barograph.testing.hosts import why_no_hosts
from barograph.testing.hosts.host import SHARED
from barograph.testing.hosts.spark_on_hosts import SparkOnHosts, open_spark_on_hosts

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "windowed_word_count.py"
VERDICT = Path(__file__).with_name("window_counts.py")
BAROGRAPH = str(Path(sys.prefix) / "bin" / "barograph")
CHECKPOINT = SHARED / "checkpoint"
# Five times as much and back; the last part is long enough for a lost host and its consequences.
LOAD = "ramp 0s=2000 40s=2000 50s=10000 100s=10000 110s=2000 900s=2000"
FALLEN_S = 120.0


class SubmittedOnHosts:
    """The script on the driver's host."""

    def __init__(self, cluster: SparkOnHosts, folder: Path, *more: str) -> None:
        self._cluster, self._out = cluster, folder / "out"
        segments = encode(Load.parse(LOAD).schedule(900.0).segments)
        known = ("--workloads", "--master", cluster.master, "--properties-file", str(cluster.properties()))
        words = [BAROGRAPH, "submit", *known, *more, str(SCRIPT), str(CHECKPOINT), segments]
        self._program = cluster.program(words)
        assert self._program.stdout is not None
        # The console sink writes much: a full pipe would stop the query.
        drain = (self._program.stdout, self._out.open("w"))
        threading.Thread(target=shutil.copyfileobj, args=drain, daemon=True).start()

    def said(self) -> str:
        return self._cluster.log("driver").read_text()

    def ask(self, *words: str) -> str:
        """The output of another command of Barograph on the same host."""
        asked = self._cluster.program([BAROGRAPH, *words])
        out, _ = asked.communicate(timeout=60)
        return out

    def topology(self) -> dict[str, Any]:
        drivers = json.loads(self.ask("status", "--format", "json") or "[]")
        return next((topology for driver in drivers for topology in driver["topologies"]), {})

    def decisions(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.ask("decisions", "--all", "--format", "json").splitlines()]

    def settle(self, condition: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert self._program.poll() is None and time.monotonic() < deadline, self.said()[-6000:]
            time.sleep(1.0)

    def end(self) -> None:
        self._cluster.driver.run(["pkill", "-TERM", "-f", SCRIPT.name])
        self._program.wait(60)


@pytest.fixture
def cluster() -> Iterator[SparkOnHosts]:
    """It asks for a secret."""
    if (why := why_no_hosts()) is not None:
        pytest.skip(why)
    with open_spark_on_hosts(programs=[ROOT], is_secret=True) as opened:
        yield opened


@pytest.mark.spark
@pytest.mark.slow
def test_an_unchanged_script_is_scaled_and_moved_and_outlives_a_host(cluster: SparkOnHosts, tmp_path: Path) -> None:
    script = SubmittedOnHosts(cluster, tmp_path, "--act", "--conf", "spark.sql.shuffle.partitions=2")
    script.settle(lambda: bool(script.topology()), 300.0)
    begun_s = time.monotonic()
    assert "act: queries are kept; adaptive acts" in script.said()

    def done(what: str) -> list[dict[str, Any]]:
        return [d for d in script.decisions() if d.get("outcome") == "applied" and d[what]]

    script.settle(lambda: bool(done("rescales")), 300.0)
    script.settle(lambda: bool(done("moves")), 300.0)
    before = script.topology()
    used = next(node for node, instances in before["by_node"].items() if instances)
    lost = next(name for name in cluster.workers if cluster.hosts.by_name[name].address == used)
    cluster.hosts.by_name[lost].lose()
    script.settle(lambda: len(script.topology().get("restarts", ())) > len(before["restarts"]), 120.0)
    script.settle(lambda: time.monotonic() - begun_s > FALLEN_S, FALLEN_S)
    epoch = script.topology()["epoch"]
    script.settle(lambda: script.topology().get("epoch", 0) > epoch + 2, 120.0)
    script.end()
    verdict = json.loads(cluster.driver.run([sys.executable, str(VERDICT), str(CHECKPOINT)], 300.0).splitlines()[-1])
    assert verdict["rows"] > 300_000
    assert verdict["wrong"] == {}
