"""Groups are made where the kernel shows a hierarchy, limits are written in an order it accepts, and they hold."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barograph.engines.spark.cluster import node_limit
from barograph.engines.spark.cluster.node_limit import (
    ENTER,
    RunGroups,
    Tree,
    limit_steps,
    make_groups,
    remove_groups,
    trees,
)
from barograph.model import BadInput

V1 = "30 23 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct"
V2 = "35 24 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
OTHER = "31 23 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset"
DOCKER = r"40 39 0:26 /docker/ab /sys/fs/c\040group/cpu ro - cgroup cgroup rw,cpu"


@pytest.mark.parametrize(
    ("mounts", "own", "expected"),
    [
        ("", "", []),
        (OTHER, "3:cpuset:/", []),
        (
            V1,
            "2:cpu,cpuacct:/user\n0::/",
            [Tree(1, Path("/sys/fs/cgroup/cpu,cpuacct/user")), Tree(1, Path("/sys/fs/cgroup/cpu,cpuacct"))],
        ),
        (DOCKER, "2:cpu:/docker/ab", [Tree(1, Path("/sys/fs/c group/cpu"))]),
        (
            V2,
            "0::/user.slice/a.scope",
            [Tree(2, Path("/sys/fs/cgroup" + below)) for below in ("", "/user.slice", "/user.slice/a.scope")],
        ),
    ],
    ids=["no groups", "no cpu controller", "v1", "v1 in a container", "v2"],
)
def test_where_groups_could_be_made(mounts: str, own: str, expected: list[Tree]) -> None:
    assert trees(mounts, own) == tuple(expected)


def test_v1_before_v2_when_both_are_mounted() -> None:
    assert [tree.version for tree in trees(f"{V2}\n{V1}", "2:cpu,cpuacct:/\n0::/")] == [1, 2]


def test_v1_quota_is_lifted_before_the_period_changes() -> None:
    assert limit_steps(1, 0.6) == (
        ("cpu.cfs_quota_us", "-1"),
        ("cpu.cfs_period_us", "20000"),
        ("cpu.cfs_quota_us", "12000"),
    )


def test_v2_is_one_write() -> None:
    assert limit_steps(2, 1.5) == (("cpu.max", "30000 20000"),)
    assert limit_steps(2, 0.2) == (("cpu.max", "20000 100000"),)


def test_a_quota_the_kernel_refuses_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"cannot have 0.005 cores: the least is 0.01"):
        limit_steps(1, 0.005)


def test_if_no_group_can_be_made_the_reason_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_limit, "trees", lambda *_: (Tree(2, tmp_path),))  # a folder that is not a group
    assert "cgroup.subtree_control: No such file" in str(make_groups("a", ["node-1"]))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(node_limit, "trees", lambda *_: ())
    assert make_groups("a", ["node-1"]) == "this machine has no cpu control groups"


def test_v2_limit_reads_back(tmp_path: Path) -> None:
    group = tmp_path / "node-1"
    group.mkdir()
    groups = RunGroups(2, tmp_path)
    groups.fence("node-1", 0.25)
    assert groups.limit("node-1") == 0.25
    (group / "cpu.max").write_text("max 100000\n")
    assert groups.limit("node-1") is None


def test_only_own_groups_are_removed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a group of Barograph"):
        remove_groups(RunGroups(1, tmp_path))


@pytest.fixture
def groups() -> Iterator[RunGroups]:
    made = make_groups(f"test-{os.getpid()}", ["node-1"])
    if isinstance(made, str):
        pytest.skip(made)
    yield made
    remove_groups(made)
    assert not made.path.exists()


def used_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def throttling(group: Path) -> tuple[int, int]:
    stat = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(stat["nr_periods"]), int(stat["nr_throttled"])


def test_limit_holds(groups: RunGroups) -> None:
    """A loop that would take a whole core gets, of each period, what the fence gives and no more."""
    cpu, period_s, group = 0.25, 0.02, groups.node("node-1")
    groups.fence("node-1", cpu)
    loop = subprocess.Popen(["sh", "-c", ENTER, "sh", group, sys.executable, "-c", "while True: pass"])
    try:
        deadline = time.monotonic() + 20
        while throttling(group)[1] < 30 and time.monotonic() < deadline:
            time.sleep(0.02)
        used, (periods, throttled) = used_s(loop.pid), throttling(group)
    finally:
        loop.kill()
        loop.wait()
    assert throttled >= 30
    # A limit that did not hold would give four times as much; the kernel hands quota out in slices, hence the margins.
    assert 0.4 * throttled * cpu * period_s < used < 2.0 * periods * cpu * period_s + 0.05


def test_limit_can_change_and_be_lifted(groups: RunGroups) -> None:
    assert groups.limit("node-1") is None
    child = groups.node("node-1") / "thread-1"
    child.mkdir()
    groups.fence("node-1", 0.2)
    if groups.version == 1:  # v2 needs threaded groups for this
        (child / "cpu.cfs_quota_us").write_text("15000")
    # Periods differ: neither the new quota with the old period nor the old quota with the new period is accepted.
    for cpu in (0.7, 0.2, 0.7):
        groups.fence("node-1", cpu)
        assert groups.limit("node-1") == pytest.approx(cpu)
    groups.lift("node-1")
    assert groups.limit("node-1") is None
