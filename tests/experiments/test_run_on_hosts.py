"""``barograph run`` on a standalone cluster of three hosts, which Barograph did not start."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barograph.testing.hosts import why_no_hosts
from barograph.testing.hosts.host import SHARED
from barograph.testing.hosts.spark_on_hosts import SparkOnHosts, open_spark_on_hosts

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
BAROGRAPH = str(Path(sys.prefix) / "bin" / "barograph")
OF_HOST = re.compile(r"(\d+\.\d+\.\d+\.\d+): (.*?)(?=  \d+\.|$)")


@pytest.fixture
def cluster() -> Iterator[SparkOnHosts]:
    """It asks for a secret."""
    if (why := why_no_hosts()) is not None:
        pytest.skip(why)
    with open_spark_on_hosts(programs=[ROOT], is_secret=True) as opened:
        yield opened


class RunOnHosts:
    """A run on the driver's host; its table is in the log of that host."""

    def __init__(self, cluster: SparkOnHosts, *more: str) -> None:
        self._cluster = cluster
        known = ("--master", cluster.master, "--properties-file", str(cluster.properties()), "--format", "json")
        self._program = cluster.program(
            [BAROGRAPH, "run", "wordcount", *known, "--checkpoint", str(SHARED / "run"), *more]
        )

    def table(self) -> str:
        return self._cluster.log("driver").read_text()

    def by_host(self) -> dict[str, str]:
        """The instances on each host, of the last second that was shown; - for none."""
        lines = [line for line in self.table().splitlines() if OF_HOST.search(line) and line[:6].strip().isdecimal()]
        return dict(OF_HOST.findall(lines[-1])) if lines else {}

    def settle(self, condition: Callable[[], bool], timeout_s: float = 120.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert self._program.poll() is None and time.monotonic() < deadline, self.table()[-4000:]
            time.sleep(0.2)

    def report(self) -> dict[str, Any]:
        out, _ = self._program.communicate()
        assert self._program.returncode == 0, f"{out}\n{self.table()[-4000:]}"
        found: dict[str, Any] = json.loads(out)
        return found


def test_a_run_places_by_host_and_every_row_is_counted_once(cluster: SparkOnHosts) -> None:
    one, two, three = (cluster.hosts.by_name[name].address for name in cluster.workers)
    run = RunOnHosts(
        cluster,
        "--load",
        "constant 200",
        "--seconds",
        "25",
        "--at",
        f"8:move count/1={two}",
        "--at",
        "14:scale split=3",
    )
    found = run.report()
    assert {where.partition("/")[0] for where in found["first"]["placement"].values()} == {one, two, three}
    assert all(action["ok"] for action in found["actions"]) and len(found["actions"]) == 2, found["actions"]
    assert (found["rows"]["lost"], found["rows"]["counted_twice"], found["restarts"]) == (0, 0, [])


def test_without_the_secret_it_is_one_sentence(cluster: SparkOnHosts) -> None:
    words = ["run", "wordcount", "--master", cluster.master, "--checkpoint", str(SHARED / "run")]
    program = cluster.program([BAROGRAPH, *words])
    program.communicate()
    said = cluster.log("driver").read_text()
    assert program.returncode == 2, said
    assert (
        f"{cluster.master} did not take the application: either the cluster asks for a secret" in said.splitlines()[-1]
    )
    assert "Traceback" not in said


def test_a_run_goes_on_while_hosts_are_cut_off_lost_and_added(cluster: SparkOnHosts) -> None:
    one, two, three = (cluster.hosts.by_name[name].address for name in cluster.workers)
    run = RunOnHosts(
        cluster, "--load", "constant 200", "--seconds", "240", "--policy", "even", "--migration", "cut",
        "--release-after", "never", "--enforce", "off",
    )  # fmt: skip
    run.settle(lambda: set(run.by_host()) == {one, two, three} and "-" not in run.by_host().values(), 300.0)
    cluster.hosts.cut("host-1", "host-2")
    run.settle(lambda: "do not reach each other" in run.table())
    run.settle(lambda: "-" in (run.by_host()[one], run.by_host()[two]))
    cluster.hosts.heal("host-1", "host-2")
    cluster.hosts.by_name["host-3"].lose()
    run.settle(lambda: run.by_host()[three] == "-" and set(run.by_host().values()) != {"-"})
    added = cluster.hosts.by_name[cluster.add_worker()].address
    run.settle(lambda: run.by_host().get(added, "-") != "-")
    found = run.report()
    assert len(found["restarts"]) >= 2
    assert (found["rows"]["lost"], found["rows"]["counted_twice"]) == (0, 0)
