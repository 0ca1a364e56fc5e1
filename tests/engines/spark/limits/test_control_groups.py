"""Limits on the real control groups of this machine, v1 or v2: they hold, change at once, and leave nothing behind."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from barograph.engines.spark.cluster.node_limit import ENTER, RunGroups, make_groups, remove_groups
from barograph.engines.spark.limits.cluster_limits import ClusterLimits
from barograph.engines.spark.limits.control_groups import GroupUsage, NodeLimits, fence_of, node_group
from barograph.engines.spark.limits.group_writes import ALL, NodeControlGroup, Quota, ThreadLimit
from barograph.model import Instance

A, B, C = (Instance("wc", "split", i) for i in range(3))
# Hashing releases Python's lock, so that a throttled thread does not block the others. Another niceness would change
# the weight, so the program sets it to 0 if it is allowed to.
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
def groups() -> Iterator[RunGroups]:
    made = make_groups(f"shares-{os.getpid()}", ["node-1"])
    if isinstance(made, str):
        pytest.skip(made)
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

    def __init__(self, groups: RunGroups, threads: int) -> None:
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
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.02)


def more_throttled(limits: NodeLimits, instance: Instance, by: int) -> GroupUsage:
    """Usage once the instance was throttled so many times more; what it used meanwhile, and in how many periods."""
    before = limits.usage()[instance]
    wait_until(lambda: limits.usage()[instance].throttled >= before.throttled + by)
    after = limits.usage()[instance]
    assert before.cpu_s is not None and after.cpu_s is not None
    assert after.throttled_s > before.throttled_s
    return GroupUsage(
        after.cpu_s - before.cpu_s, after.periods - before.periods, after.throttled - before.throttled, 0.0
    )


def threads_in(path: Path) -> set[int]:
    return {int(t) for t in path.read_text().split()}


def test_usage_follows_the_limit_and_a_change_takes_effect_at_once(groups: RunGroups) -> None:
    node = node_group(groups, "node-1")
    with Burner(groups, 1) as burner, NodeLimits(node) as limits:
        (tid,) = burner.tids
        assert limits.hold({A: ThreadLimit(tid, 5.0)}) == ()
        small = more_throttled(limits, A, 15)
        assert limits.hold({A: ThreadLimit(tid, 20.0)}) == ()
        assert fence_of(replace(node, path=node.group(A))) == Quota(4_000, 20_000)
        if node.saves:
            assert (node.group(A) / node.savings).read_text().strip() == "4000"
        large = more_throttled(limits, A, 15)
        # 1 ms and 4 ms of each 20 ms; the kernel hands quota out in slices, hence the margins
        for found, quota_s in ((small, 0.001), (large, 0.004)):
            assert found.cpu_s is not None
            assert 0.4 * found.throttled * quota_s < found.cpu_s < 2.0 * (found.periods + 2) * quota_s
        assert threads_in(node.group(A) / node.threads) == {tid}
    assert not (node.path / ALL).exists()


def test_threads_beside_the_instances_are_not_starved(groups: RunGroups) -> None:
    """Three instances that want more than the node has, and a thread that is not an instance, like a network thread."""
    if os.getuid() != 0:
        pytest.skip("a nice test process would weigh less than what it is tested against")
    node = node_group(groups, "node-1")
    with Burner(groups, 4) as burner, NodeLimits(node) as limits:
        *held, other = burner.tids
        limits.hold({i: ThreadLimit(tid, 30.0) for i, tid in zip((A, B, C), held, strict=True)})
        before = burner.used_s(other)
        start = {i: u.cpu_s or 0.0 for i, u in limits.usage().items()}
        wait_until(lambda: sum((u.cpu_s or 0.0) - start[i] for i, u in limits.usage().items()) > 0.15)
        others = burner.used_s(other) - before
        instances = sum((u.cpu_s or 0.0) - start[i] for i, u in limits.usage().items())
        assert others > 0.2 * instances
        assert threads_in(node.path / node.threads) >= {other, burner.process.pid}


def test_threads_move_between_instances(groups: RunGroups) -> None:
    node = node_group(groups, "node-1")
    with Burner(groups, 3) as burner, NodeLimits(node) as limits:
        one, two, three = burner.tids
        limits.hold({A: ThreadLimit(one, 10.0), B: ThreadLimit(two, 10.0)})
        limits.hold({A: ThreadLimit(two, 10.0), C: ThreadLimit(three, 10.0)})
        assert threads_in(node.group(A) / node.threads) == {two}
        assert threads_in(node.group(C) / node.threads) == {three}
        assert not node.group(B).exists()
        assert one in threads_in(node.path / node.threads)
        assert set(limits.usage()) == {A, C}
        # A thread that an instance started begins in its group; the next call moves it back.
        (node.group(A) / node.threads).write_text(str(one))
        limits.hold({A: ThreadLimit(two, 10.0), C: ThreadLimit(three, 10.0)})
        assert threads_in(node.group(A) / node.threads) == {two}
    assert not (node.path / ALL).exists()


def test_a_fence_that_is_lifted_for_a_while_can_be_put_back(groups: RunGroups) -> None:
    node = node_group(groups, "node-1")
    with Burner(groups, 1) as burner, NodeLimits(node, cores=0.3) as limits:
        limits.hold({A: ThreadLimit(burner.tids[0], 100.0)})
        groups.lift("node-1")
        limits.hold({A: ThreadLimit(burner.tids[0], 90.0)})
        groups.fence("node-1", 0.3)
        assert limits.problem == ""
        assert groups.limit("node-1") == pytest.approx(0.3)


def test_threads_that_are_gone_or_of_other_processes_are_left_alone(groups: RunGroups) -> None:
    node = node_group(groups, "node-1")
    here = threading.get_native_id()  # this test's own thread is not in the node's group
    own = Path("/proc/thread-self/cgroup").read_text()
    with Burner(groups, 1) as burner, NodeLimits(node) as limits:
        lost = limits.hold(
            {A: ThreadLimit(burner.tids[0], 10.0), B: ThreadLimit(here, 10.0), C: ThreadLimit(2**22 - 1, 10.0)}
        )
        assert [text.partition(":")[0] for text in lost] == [str(B), str(C)]
        assert set(limits.usage()) == {A}
    assert Path("/proc/thread-self/cgroup").read_text() == own


def test_groups_left_by_a_crash_are_removed(groups: RunGroups) -> None:
    node = node_group(groups, "node-1")
    with Burner(groups, 2) as burner:
        NodeLimits(node).hold(
            {A: ThreadLimit(burner.tids[0], 10.0), B: ThreadLimit(burner.tids[1], 10.0)}
        )  # and never released
        assert (node.path / ALL).exists()
        with NodeLimits(node) as limits:
            limits.hold({C: ThreadLimit(burner.tids[0], 10.0)})
            assert {p.name for p in (node.path / ALL).iterdir() if p.is_dir()} == {node.group(C).name}
            assert burner.tids[1] in threads_in(node.path / node.threads)
        assert not (node.path / ALL).exists()
        NodeLimits(node).hold({A: ThreadLimit(burner.tids[0], 10.0)})
    # The process is dead and the groups were not released: the end of the run removes them, which the fixture checks.


def test_groups_are_removed_after_an_error(groups: RunGroups) -> None:
    node = node_group(groups, "node-1")
    with Burner(groups, 1) as burner:
        with pytest.raises(ZeroDivisionError), NodeLimits(node) as limits:
            limits.hold({A: ThreadLimit(burner.tids[0], 10.0)})
            raise ZeroDivisionError
        assert not (node.path / ALL).exists()
        assert node.accounts is None or not node.accounts.exists()
        assert burner.tids[0] in threads_in(node.path / node.threads)


def test_groups_that_cannot_be_written_are_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(NodeLimits, "_is_of_node", lambda *_: True)
    limits = NodeLimits(NodeControlGroup(1, tmp_path / "barograph" / "run" / "node-1"), said.append)
    for _ in range(3):
        assert limits.hold({A: ThreadLimit(1, 10.0)}) == ()
    assert len(said) == 1
    assert said[0].startswith("CPU limits are not enforced: ")
    assert "No such file" in said[0]
    assert limits.problem == said[0]
    assert limits.usage() == {}
    limits.release()


def test_a_cluster_limits_all_nodes_or_none(groups: RunGroups) -> None:
    said: list[str] = []
    node = node_group(groups, "node-1")
    with Burner(groups, 1) as burner, ClusterLimits(groups, ["node-1"], said.append) as limits:
        here = ("node-1", ThreadLimit(burner.tids[0], 10.0))
        assert limits.hold({A: here, B: ("node-9", ThreadLimit(burner.tids[0], 10.0))}) == (
            f"{B}: there is no node 'node-9'",
        )
        assert set(limits.usage()) == {A}
        assert threads_in(node.group(A) / node.threads) == {burner.tids[0]}
        assert limits.hold({}) == ()
        assert not (node.path / ALL).exists(), "an instance that is not named has no limit any more"
    with Burner(groups, 1) as burner, ClusterLimits(groups, ["node-1", "node-2"], said.append) as limits:
        # node-2 has no group, so the limits of node-1 are removed too
        both = {A: ("node-1", ThreadLimit(burner.tids[0], 10.0)), B: ("node-2", ThreadLimit(burner.tids[0], 10.0))}
        for _ in range(2):
            limits.hold(both)
        assert not (node.path / ALL).exists()
        assert limits.usage() == {}
        assert said == [limits.problem] and "node-2" in said[0]


def test_a_cluster_without_groups_reports_it_once() -> None:
    said: list[str] = []
    limits = ClusterLimits("this machine has no cpu control groups", ["node-1"], said.append)
    assert limits.hold({A: ("node-1", ThreadLimit(1, 10.0))}) == ()
    assert said == ["CPU limits are not enforced: this machine has no cpu control groups"] == [limits.problem]
    limits.release()
