"""Shares on the real control groups of this machine: they bite, change at once, and nothing is left behind."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barograph.engines.spark.fence import ENTER, Groups, make_groups, remove_groups
from barograph.engines.spark.share_groups import ClusterShares, ShareGroups, Usage, fence_of, node_group
from barograph.engines.spark.share_writes import ALL, Held, NodeGroup
from barograph.model import Instance

A, B, C = (Instance("wc", "split", i) for i in range(3))
# Hashing leaves Python's lock alone, so that a thread which is held back holds nobody else back. Niceness would count
# as another weight, so the program takes the usual one where it may.
BURN = """
import contextlib, hashlib, os, sys, threading
with contextlib.suppress(OSError):
    os.setpriority(os.PRIO_PROCESS, 0, 0)
data = bytes(1 << 18)
def burn():
    while True:
        hashlib.sha256(data).digest()
threads = [threading.Thread(target=burn, daemon=True) for _ in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
print(*(t.native_id for t in threads), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def groups() -> Iterator[Groups]:
    made = make_groups(f"shares-{os.getpid()}", ["node-1"])
    if isinstance(made, str):
        pytest.skip(made)
    if made.version != 1:
        remove_groups(made)
        pytest.skip("v2 groups are tested in a virtual machine")
    try:
        made.fence("node-1", 0.3)
        yield made
    finally:
        remove_groups(made)
    assert not made.path.exists()
    counted = Path("/sys/fs/cgroup/cpuacct/barograph") / made.path.name
    assert not counted.exists()


class Burner:
    """A process in the node's group whose threads use all the CPU they get."""

    def __init__(self, groups: Groups, threads: int) -> None:
        order = ["sh", "-c", ENTER, "sh", str(groups.node("node-1")), sys.executable, "-c", BURN, str(threads)]
        self.process = subprocess.Popen(order, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.tids = [int(t) for t in self.process.stdout.readline().split()]

    def used_s(self, tid: int) -> float:
        return int(Path(f"/proc/{self.process.pid}/task/{tid}/schedstat").read_text().split()[0]) / 1e9

    def __enter__(self) -> "Burner":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()


def wait_until(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def more_throttled(shares: ShareGroups, instance: Instance, by: int) -> Usage:
    """Usage once the instance was held back so many times more; what it used meanwhile, and in how many periods."""
    before = shares.usage()[instance]
    wait_until(lambda: shares.usage()[instance].throttled >= before.throttled + by)
    after = shares.usage()[instance]
    assert before.cpu_s is not None and after.cpu_s is not None
    assert after.throttled_s > before.throttled_s
    return Usage(after.cpu_s - before.cpu_s, after.periods - before.periods, after.throttled - before.throttled, 0.0)


def threads_in(path: Path) -> set[int]:
    return {int(t) for t in path.read_text().split()}


def test_usage_follows_the_share_and_a_change_takes_effect_at_once(groups: Groups) -> None:
    node = node_group(groups, "node-1")
    with Burner(groups, 1) as burner, ShareGroups(node) as shares:
        (tid,) = burner.tids
        assert shares.hold({A: Held(tid, 5.0)}) == ()
        small = more_throttled(shares, A, 15)
        assert shares.hold({A: Held(tid, 20.0)}) == ()
        assert (node.group(A) / "cpu.cfs_quota_us").read_text().strip() == "4000"
        if node.saves:
            assert (node.group(A) / "cpu.cfs_burst_us").read_text().strip() == "4000"
        large = more_throttled(shares, A, 15)
        # 1 ms and 4 ms of each 20 ms; the kernel hands quota out in slices, hence the margins
        for found, quota_s in ((small, 0.001), (large, 0.004)):
            assert found.cpu_s is not None
            assert 0.4 * found.throttled * quota_s < found.cpu_s < 2.0 * (found.periods + 2) * quota_s
        assert threads_in(node.group(A) / "tasks") == {tid}
    assert not (node.path / ALL).exists()


def test_threads_beside_the_instances_are_not_starved(groups: Groups) -> None:
    """Three instances that want more than the node has, and a thread that is none, as a network thread would be."""
    if os.getuid() != 0:
        pytest.skip("a nice test process would weigh less than what it is tested against")
    node = node_group(groups, "node-1")
    with Burner(groups, 4) as burner, ShareGroups(node) as shares:
        *held, other = burner.tids
        shares.hold({i: Held(tid, 30.0) for i, tid in zip((A, B, C), held, strict=True)})
        before = burner.used_s(other)
        start = {i: u.cpu_s or 0.0 for i, u in shares.usage().items()}
        wait_until(lambda: sum((u.cpu_s or 0.0) - start[i] for i, u in shares.usage().items()) > 0.15)
        others = burner.used_s(other) - before
        instances = sum((u.cpu_s or 0.0) - start[i] for i, u in shares.usage().items())
        assert others > 0.2 * instances
        assert threads_in(node.path / "tasks") >= {other, burner.process.pid}


def test_threads_change_hands(groups: Groups) -> None:
    node = node_group(groups, "node-1")
    with Burner(groups, 3) as burner, ShareGroups(node) as shares:
        one, two, three = burner.tids
        shares.hold({A: Held(one, 10.0), B: Held(two, 10.0)})
        shares.hold({A: Held(two, 10.0), C: Held(three, 10.0)})
        assert threads_in(node.group(A) / "tasks") == {two}
        assert threads_in(node.group(C) / "tasks") == {three}
        assert not node.group(B).exists()
        assert one in threads_in(node.path / "tasks")
        assert set(shares.usage()) == {A, C}
        # A thread that an instance started is born in its group; the next turn sends it back.
        (node.group(A) / "tasks").write_text(str(one))
        shares.hold({A: Held(two, 10.0), C: Held(three, 10.0)})
        assert threads_in(node.group(A) / "tasks") == {two}
    assert not (node.path / ALL).exists()


def test_a_fence_may_be_lowered_and_raised_under_the_shares(groups: Groups) -> None:
    node = node_group(groups, "node-1")
    with Burner(groups, 1) as burner, ShareGroups(node) as shares:
        shares.hold({A: Held(burner.tids[0], 100.0)})
        for cpu in (0.1, 0.25, 0.05):
            shares.refence(cpu)
            fence = fence_of(node)
            assert fence is not None and fence.pct == pytest.approx(100 * cpu)
            mine = (node.group(A) / "cpu.cfs_quota_us", node.group(A) / "cpu.cfs_period_us")
            quota_us, period_us = (int(path.read_text()) for path in mine)
            assert 0.9 * cpu < quota_us / period_us <= 0.95 * cpu + 1e-9
        assert shares.problem == ""


def test_a_fence_that_is_lifted_for_a_while_can_be_put_back(groups: Groups) -> None:
    node = node_group(groups, "node-1")
    with Burner(groups, 1) as burner, ShareGroups(node, cores=0.3) as shares:
        shares.hold({A: Held(burner.tids[0], 100.0)})
        groups.lift("node-1")
        shares.hold({A: Held(burner.tids[0], 90.0)})
        groups.fence("node-1", 0.3)
        assert shares.problem == ""
        assert groups.limit("node-1") == pytest.approx(0.3)


def test_threads_that_are_gone_or_of_somebody_else_are_left_alone(groups: Groups) -> None:
    node = node_group(groups, "node-1")
    here = threading.get_native_id()  # this test's own thread is not in the node's group
    own = Path("/proc/thread-self/cgroup").read_text()
    with Burner(groups, 1) as burner, ShareGroups(node) as shares:
        lost = shares.hold({A: Held(burner.tids[0], 10.0), B: Held(here, 10.0), C: Held(2**22 - 1, 10.0)})
        assert [text.partition(":")[0] for text in lost] == [str(B), str(C)]
        assert set(shares.usage()) == {A}
    assert Path("/proc/thread-self/cgroup").read_text() == own


def test_what_a_crash_left_is_found_by_name(groups: Groups) -> None:
    node = node_group(groups, "node-1")
    with Burner(groups, 2) as burner:
        ShareGroups(node).hold({A: Held(burner.tids[0], 10.0), B: Held(burner.tids[1], 10.0)})  # and never released
        assert (node.path / ALL).exists()
        with ShareGroups(node) as shares:
            shares.hold({C: Held(burner.tids[0], 10.0)})
            assert {p.name for p in (node.path / ALL).iterdir() if p.is_dir()} == {node.group(C).name}
            assert burner.tids[1] in threads_in(node.path / "tasks")
        assert not (node.path / ALL).exists()
        ShareGroups(node).hold({A: Held(burner.tids[0], 10.0)})
    # The process is dead and nobody released: the run's own end takes the groups away (the fixture looks).


def test_all_is_removed_when_the_work_fails(groups: Groups) -> None:
    node = node_group(groups, "node-1")
    with Burner(groups, 1) as burner:
        with pytest.raises(ZeroDivisionError), ShareGroups(node) as shares:
            shares.hold({A: Held(burner.tids[0], 10.0)})
            raise ZeroDivisionError
        assert not (node.path / ALL).exists()
        assert node.accounts is None or not node.accounts.exists()
        assert burner.tids[0] in threads_in(node.path / "tasks")


def test_where_groups_cannot_be_written_it_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(ShareGroups, "_is_of_node", lambda *_: True)
    shares = ShareGroups(NodeGroup(1, tmp_path / "barograph" / "run" / "node-1"), said.append)
    for _ in range(3):
        assert shares.hold({A: Held(1, 10.0)}) == ()
    assert len(said) == 1
    assert said[0].startswith("CPU shares are not enforced: ")
    assert "No such file" in said[0]
    assert shares.problem == said[0]
    assert shares.usage() == {}
    shares.release()


def test_a_cluster_holds_all_nodes_or_none(groups: Groups) -> None:
    said: list[str] = []
    node = node_group(groups, "node-1")
    with Burner(groups, 1) as burner, ClusterShares(groups, ["node-1"], said.append) as shares:
        here = ("node-1", Held(burner.tids[0], 10.0))
        assert shares.hold({A: here, B: ("node-9", Held(burner.tids[0], 10.0))}) == (f"{B}: there is no node 'node-9'",)
        assert set(shares.usage()) == {A}
        assert threads_in(node.group(A) / "tasks") == {burner.tids[0]}
        assert shares.hold({}) == ()
        assert not (node.path / ALL).exists(), "who is not named has no limit any more"
    with Burner(groups, 1) as burner, ClusterShares(groups, ["node-1", "node-2"], said.append) as shares:
        # node-2 has no group: what node-1 has is let go
        both = {A: ("node-1", Held(burner.tids[0], 10.0)), B: ("node-2", Held(burner.tids[0], 10.0))}
        for _ in range(2):
            shares.hold(both)
        assert not (node.path / ALL).exists()
        assert shares.usage() == {}
        assert said == [shares.problem] and "node-2" in said[0]


def test_a_cluster_without_groups_says_so_once() -> None:
    said: list[str] = []
    shares = ClusterShares("this machine has no cpu control groups", ["node-1"], said.append)
    assert shares.hold({A: ("node-1", Held(1, 10.0))}) == ()
    assert said == ["CPU shares are not enforced: this machine has no cpu control groups"] == [shares.problem]
    shares.release()
