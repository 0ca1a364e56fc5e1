"""Hosts in namespaces: they see other files, processes and addresses than this machine, and leave nothing behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barograph.engines.spark.cluster.processes import marked, python_environment
from barograph.testing.hosts import Hosts, open_hosts, why_no_hosts
from barograph.testing.hosts.host import SHARED, Sight
from barograph.testing.hosts.spark_on_hosts import SparkOnHosts, open_spark_on_hosts

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("counting_on_hosts.py")
needs_hosts = pytest.mark.skipif(why_no_hosts() is not None, reason=str(why_no_hosts()))
ECHO = "import socket; s = socket.create_server(('', 4000)); s.settimeout(5); s.accept()"
LISTENS = ":0FA0 00000000:0000 0A"  # the port, and the state, in the kernel's table of sockets
CALL = "import socket, sys; socket.create_connection((sys.argv[1], 4000), 2)"
OWNER = """
import time
from barograph.testing.hosts import open_hosts
from barograph.testing.hosts.host import Sight
with open_hosts({"host-1": Sight()}) as hosts:
    print(hosts.home.folder, flush=True)
    time.sleep(600)
"""


def settle(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def reaches(hosts: Hosts, one: str, other: str) -> bool:
    there = hosts.by_name[other]
    # It ends by itself, whether it is called or not.
    server = there.start([sys.executable, "-c", ECHO], hosts.home.folder / "echo.log")
    try:
        settle(lambda: LISTENS in there.run(["cat", "/proc/net/tcp"]))
        hosts.by_name[one].run([sys.executable, "-c", CALL, there.address])
        return True
    except OSError:
        return False
    finally:
        server.wait(30)


@needs_hosts
def test_hosts_see_other_files_processes_and_addresses_than_this_machine(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "file").write_text("given")
    with open_hosts(
        {"host-1": Sight({Path("/srv/elsewhere"): given}, covered=(ROOT / "docs",)), "host-2": Sight()}
    ) as hosts:
        one, two = hosts.by_name.values()
        assert one.run(["hostname"]).strip() == "host-1"
        assert one.run(["cat", "/srv/elsewhere/file"]) == "given"
        assert one.run(["ls", "/tmp"]) == "", "it has a /tmp of its own"
        one.run(["sh", "-c", f"echo common > {SHARED}/file; echo own > /tmp/file"])
        assert two.run(["cat", f"{SHARED}/file"]) == "common\n"
        assert two.run(["ls", "/tmp"]) == ""
        assert (one.folder / "tmp" / "file").read_text() == "own\n"
        assert str(os.getpid()) not in one.run(["ls", "/proc"]).split()
        assert two.address in two.run(["ip", "-brief", "address", "show", "dev", "eth0"])
        assert two.address in one.run(["cat", "/etc/hosts"])
        assert hosts.processes() > 0
    assert hosts.processes() == 0
    assert not hosts.home.folder.exists()


@needs_hosts
@pytest.mark.slow  # only slow tests cut links
def test_a_cut_link_loses_what_is_sent_until_it_is_healed() -> None:
    path = Sight(kept=(Path(sys.prefix), Path(sys.base_prefix)))
    with open_hosts({"host-1": path, "host-2": path, "host-3": path}) as hosts:
        assert reaches(hosts, "host-1", "host-2")
        hosts.cut("host-1", "host-2")
        assert not reaches(hosts, "host-1", "host-2")
        assert not reaches(hosts, "host-2", "host-1")
        assert reaches(hosts, "host-1", "host-3")
        assert reaches(hosts, "host-3", "host-2")
        hosts.heal("host-1", "host-2")
        assert reaches(hosts, "host-1", "host-2")


@needs_hosts
def test_hosts_end_with_a_process_that_is_killed() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], env=python_environment(), stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().strip())
    assert marked(folder.name)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    settle(lambda: not marked(folder.name) and not folder.exists())


@pytest.mark.parametrize(
    ("root", "missing", "why"), [(False, None, "need root"), (True, "nsenter", "need nsenter: install")]
)
def test_why_there_can_be_no_hosts(root: bool, missing: str | None, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else f"/usr/bin/{name}")
    assert why in str(why_no_hosts())


RECOVERY_TARGET_S = 30.0


class Counting:
    """The program on the driver's host. seen: its last line."""

    def __init__(self, cluster: SparkOnHosts, *more: str) -> None:
        self._cluster = cluster
        self._program = cluster.program([str(PROGRAM), json.dumps(cluster.session_conf()), *more])
        self.seen: dict[str, Any] = {}

    def look(self) -> dict[str, Any]:
        assert self._program.stdout is not None
        line = self._program.stdout.readline()
        assert line, self._cluster.log("driver").read_text()[-4000:]
        self.seen = json.loads(line)
        return self.seen

    def settle(self, condition: Callable[[dict[str, Any]], bool], timeout_s: float) -> float:
        """Returns how long it took."""
        began_s = time.monotonic()
        while not condition(self.look()):
            took_s = time.monotonic() - began_s
            assert took_s < timeout_s, f"{self.seen}\n{self._cluster.log('driver').read_text()[-4000:]}"
        return time.monotonic() - began_s

    def used_pct(self) -> dict[str, float]:
        """By node, over three seconds; not of the first one, in which an order takes effect."""
        self.settle(self._since(1.0), 60.0)
        used, took_s = dict.fromkeys(self.seen["nodes"], 0.0), 0.0
        over = self._since(3.0)
        while not over(self.look()):
            took_s += self.seen["cycle_s"]
            for node, cpu_s in self.seen["cpu_s"].items():
                used[node] += cpu_s
        return {node: 100 * cpu_s / took_s for node, cpu_s in used.items()}

    @staticmethod
    def _since(seconds: float) -> Callable[[dict[str, Any]], bool]:
        end_s = time.monotonic() + seconds
        return lambda _: time.monotonic() > end_s

    def await_used(self, condition: Callable[[float], bool]) -> None:
        """Until it holds on every node."""
        deadline = time.monotonic() + 120.0
        while not all(map(condition, (used := self.used_pct()).values())):
            assert time.monotonic() < deadline, used

    def order(self, order: dict[str, Any]) -> list[str]:
        """Returns what came of it."""
        before = self.seen["said"]
        self._send(json.dumps(order))
        self.settle(lambda now: bool(now["said"] != before), 120.0)
        said: list[str] = self.seen["said"]
        return said

    def _send(self, line: str) -> None:
        assert self._program.stdin is not None
        self._program.stdin.write(f"{line}\n")
        self._program.stdin.flush()

    def verdict(self) -> dict[str, Any]:
        self._send("end")
        while "exact" not in self.look():
            pass
        return self.seen


@pytest.fixture
def cluster() -> Iterator[SparkOnHosts]:
    if (why := why_no_hosts()) is not None:
        pytest.skip(why)
    with open_spark_on_hosts(programs=[ROOT]) as opened:
        yield opened


@pytest.mark.spark
@pytest.mark.slow
def test_rows_flow_again_while_two_hosts_do_not_reach_each_other(cluster: SparkOnHosts) -> None:
    counting = Counting(cluster)
    counting.settle(lambda now: now["output"] > 400 and len(set(now["executors"].values())) == 3, 300.0)
    cluster.hosts.cut("host-1", "host-2")
    cut_s = time.monotonic()
    counting.settle(lambda now: len(now["restarts"]) > 0, 60.0)
    before = counting.seen["output"]
    counting.settle(lambda now: now["output"] > before + 200, 60.0)
    took_s = time.monotonic() - cut_s
    sys.stdout.write(f"rows flow again {took_s:.1f} s after the cut\n")
    assert took_s < RECOVERY_TARGET_S
    used = set(counting.seen["executors"].values())
    assert len(used) < 3, "one side is avoided"
    assert any("do not reach each other" in cause for cause in counting.seen["restarts"])
    # The result is read back by batch jobs on all executors, and Spark's own shuffle would wait for minutes.
    cluster.hosts.heal("host-1", "host-2")
    assert counting.verdict()["exact"]
    assert "gets no instances for now" in cluster.log("driver").read_text()


@pytest.mark.spark
@pytest.mark.slow
def test_a_host_that_is_lost_is_done_without(cluster: SparkOnHosts) -> None:
    counting = Counting(cluster)
    counting.settle(lambda now: now["output"] > 400 and len(set(now["executors"].values())) == 3, 300.0)
    cluster.hosts.by_name["host-3"].lose()
    counting.settle(lambda now: len(now["restarts"]) > 0, 60.0)
    before = counting.seen["output"]
    counting.settle(lambda now: now["output"] > before + 200, 60.0)
    assert counting.verdict()["exact"]


@pytest.mark.spark
@pytest.mark.slow
def test_a_host_is_released_wanted_again_another_one_added_and_all_of_it_steered(cluster: SparkOnHosts) -> None:
    """On a standalone cluster, which is told how many executors are wanted; then by a controller of its own process."""
    one, two, three = (cluster.hosts.by_name[name].address for name in cluster.workers)
    counting = Counting(cluster)
    counting.settle(lambda now: now["output"] > 400 and len(now["nodes"]) == 3, 300.0)
    assert counting.seen["nodes"] == {one: 1, two: 1, three: 1}, "nodes are hosts"
    first = {slot: executor for executor, slot in counting.seen["slots"].items()}
    assert any(said.startswith("cut ") for said in counting.order({"gather": one}))
    assert set(counting.look()["executors"].values()) == {first[f"{one}/0"]}
    assert counting.order({"release": [three]}) == [f"released {three}"]
    counting.settle(lambda now: set(now["nodes"]) == {one, two} and now["asleep"] == [three], 60.0)
    before = counting.seen["output"]
    counting.settle(lambda now: now["output"] > before + 400, 60.0)
    assert set(counting.seen["nodes"]) == {one, two}, "no other executor is started in its place"
    assert counting.order({"fetch": [three]}) == [f"fetched {three}"]
    counting.settle(lambda now: set(now["nodes"]) == {one, two, three}, 120.0)
    again = {slot: executor for executor, slot in counting.seen["slots"].items()}
    assert again[f"{three}/0"] != first[f"{three}/0"], "another executor has the slot of the one that was released"
    added = cluster.hosts.by_name[cluster.add_worker()].address
    counting.settle(lambda now: added in now["nodes"], 120.0)
    assert any(said.startswith("cut ") for said in counting.order({"gather": added}))
    assert len(set(counting.look()["executors"].values())) == 1
    barograph = str(Path(sys.prefix) / "bin" / "barograph")
    steer = ["steer", "--policy", "even", "--act", "--migration", "cut", "--release-after", "never"]
    cluster.program([barograph, *steer])  # it ends with its host
    counting.settle(lambda now: len(set(now["executors"].values())) == 4, 180.0)
    end = counting.verdict()
    assert end["exact"] and end["restarts"] == []


@pytest.mark.spark
@pytest.mark.slow
def test_limits_are_held_on_every_host(cluster: SparkOnHosts) -> None:
    """By the executors, in each way; an instance on each host could use far more."""
    nodes = [cluster.hosts.by_name[name].address for name in cluster.workers]
    counting = Counting(cluster, "busy")
    counting.settle(lambda now: now["output"] > 400 and len(now["nodes"]) == 3, 300.0)
    assert any(said.startswith("cut ") for said in counting.order({"spread": nodes}))
    for way in ("cooperative", "cgroup"):
        counting.order({"limit": 60, "way": way})
        counting.await_used(lambda pct: pct > 9.0)
        counting.order({"limit": 5, "way": way})
        counting.await_used(lambda pct: 0.0 < pct < 7.0)
        held, problems = {held for held, _ in counting.seen["ways"]}, [why for _, why in counting.seen["ways"]]
        # Without the right to write control groups, limits are held all the same, and executors say why.
        assert held == {way} or (held == {"cooperative"} and all(problems)), counting.seen["ways"]
    assert counting.verdict() == {"exact": True, "restarts": []}
