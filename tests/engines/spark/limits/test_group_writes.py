"""The list of writes: what is written, in which order, and that the kernel would refuse no step."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.engines.spark.limits.group_writes import (
    ALL,
    NodeControlGroup,
    Quota,
    ThreadLimit,
    Write,
    Written,
    gone,
    group_name,
    quota_of,
    wanted,
    writes,
)
from barograph.model import BadInput, Instance

ROOT = Path("/cg/barograph/run/node-1")
V1, V2 = NodeControlGroup(1, ROOT), NodeControlGroup(2, ROOT)
APART = NodeControlGroup(1, ROOT, Path("/acct/barograph/run/node-1"))
A, B = Instance("wc", "split", 0), Instance("wc", "count", 1)
NODE = Quota(60_000, 100_000)


def steps(node: NodeControlGroup, before: Written, after: Written) -> list[tuple[str, str]]:
    return [(str(path.relative_to(ROOT)), content) for path, content in writes(node, before, after)]


@pytest.mark.parametrize(
    ("limit_pct", "limit", "expected"),
    [
        (40.0, None, Quota(8_000, 20_000)),
        (5.0, None, Quota(1_000, 20_000)),
        (4.9, None, Quota(1_470, 30_000)),
        (3.0, None, Quota(1_500, 50_000)),
        (1.9, None, Quota(1_900, 100_000)),
        (1.0, None, Quota(1_000, 100_000)),
        (0.0, None, Quota(1_000, 100_000)),
        (250.0, None, Quota(20_000, 20_000)),
        (80.0, NODE, NODE),
        (60.0, NODE, Quota(12_000, 20_000)),
        (50.0, Quota(150_000, 100_000), Quota(10_000, 20_000)),
    ],
)
def test_a_limit_is_a_quota_within_a_core_and_within_the_node(
    limit_pct: float, limit: Quota | None, expected: Quota
) -> None:
    assert quota_of(limit_pct, limit) == expected


def test_v1_first_writes() -> None:
    after = wanted(1, NODE, {A: ThreadLimit(11, 40.0), B: ThreadLimit(12, 20.0)})
    assert steps(V1, Written(), after) == [
        ("instances/cpu.shares", "614"),
        ("instances/wc@count@1/cpu.shares", "205"),
        ("instances/wc@count@1/cpu.cfs_quota_us", "-1"),
        ("instances/wc@count@1/cpu.cfs_period_us", "20000"),
        ("instances/wc@count@1/cpu.cfs_quota_us", "4000"),
        ("instances/wc@split@0/cpu.shares", "410"),
        ("instances/wc@split@0/cpu.cfs_quota_us", "-1"),
        ("instances/wc@split@0/cpu.cfs_period_us", "20000"),
        ("instances/wc@split@0/cpu.cfs_quota_us", "8000"),
        ("instances/cpu.cfs_quota_us", "-1"),
        ("instances/cpu.cfs_period_us", "20000"),
        ("instances/cpu.cfs_quota_us", "11400"),
        ("instances/wc@count@1/tasks", "12"),
        ("instances/wc@split@0/tasks", "11"),
    ]


def test_v2_groups_are_threaded_before_they_get_the_cpu_controller() -> None:
    after = wanted(2, NODE, {A: ThreadLimit(11, 40.0)})
    assert steps(V2, Written(), after) == [
        ("instances/cgroup.type", "threaded"),
        ("instances/wc@split@0/cgroup.type", "threaded"),
        ("cgroup.subtree_control", "+cpu"),
        ("instances/cgroup.subtree_control", "+cpu"),
        ("instances/cpu.weight", "40"),
        ("instances/wc@split@0/cpu.weight", "40"),
        ("instances/wc@split@0/cpu.max", "8000 20000"),
        ("instances/cpu.max", "11400 20000"),
        ("instances/wc@split@0/cgroup.threads", "11"),
    ]


def test_the_burst_is_never_above_the_quota() -> None:
    """The kernel refuses that at every step."""
    limits = (40.0, 20.0, 30.0)
    states = [Written(), *(wanted(1, NODE, {A: ThreadLimit(11, limit)}) for limit in limits)]
    for node, file in ((replace(V1, saves=True), "cpu.cfs_burst_us"), (replace(V2, saves=True), "cpu.max.burst")):
        saved = [
            [content for path, content in steps(node, before, after) if path.endswith(file)]
            for before, after in pairwise(states)
        ]
        assert saved == [["8000"], ["0", "4000"], ["6000"]]


CHANGES: dict[str, tuple[Mapping[Instance, ThreadLimit], Mapping[Instance, ThreadLimit], list[tuple[str, str]]]] = {
    "no change": ({A: ThreadLimit(11, 40.0)}, {A: ThreadLimit(11, 40.0)}, []),
    "another limit is one quota and the weights": (
        {A: ThreadLimit(11, 40.0)},
        {A: ThreadLimit(11, 20.0)},
        [
            ("instances/cpu.shares", "205"),
            ("instances/wc@split@0/cpu.shares", "205"),
            ("instances/wc@split@0/cpu.cfs_quota_us", "4000"),
        ],
    ),
    "another period: the quota is lifted first": (
        {A: ThreadLimit(11, 40.0)},
        {A: ThreadLimit(11, 2.0)},
        [
            ("instances/cpu.shares", "20"),
            ("instances/wc@split@0/cpu.shares", "20"),
            ("instances/wc@split@0/cpu.cfs_quota_us", "-1"),
            ("instances/wc@split@0/cpu.cfs_period_us", "50000"),
            ("instances/wc@split@0/cpu.cfs_quota_us", "1000"),
        ],
    ),
    "another thread: the old one is moved out, then the new one in": (
        {A: ThreadLimit(11, 40.0)},
        {A: ThreadLimit(13, 40.0)},
        [("tasks", "11"), ("instances/wc@split@0/tasks", "13")],
    ),
    "threads that swap groups are only moved in": (
        {A: ThreadLimit(11, 40.0), B: ThreadLimit(12, 40.0)},
        {A: ThreadLimit(12, 40.0), B: ThreadLimit(11, 40.0)},
        [("instances/wc@count@1/tasks", "11"), ("instances/wc@split@0/tasks", "12")],
    ),
    "no limits any more": ({A: ThreadLimit(11, 40.0)}, {}, [("tasks", "11")]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_only_what_differs_is_written(case: str) -> None:
    before, after, expected = CHANGES[case]
    assert steps(V1, wanted(1, NODE, before), wanted(1, NODE, after)) == expected


def test_threads_are_also_moved_where_usage_is_counted() -> None:
    before, after = wanted(1, None, {A: ThreadLimit(11, 40.0)}), wanted(1, None, {A: ThreadLimit(12, 40.0)})
    apart = [(str(p), c) for p, c in writes(APART, before, after) if str(p).startswith("/acct")]
    assert apart == [("/acct/tasks", "11"), ("/acct/barograph/run/node-1/instances/wc@split@0/tasks", "12")]


def test_groups_are_removed_innermost_first() -> None:
    one, two = (
        wanted(1, None, {A: ThreadLimit(11, 40.0)}),
        wanted(1, None, {A: ThreadLimit(11, 40.0), B: ThreadLimit(12, 9.0)}),
    )
    assert gone(V1, two, one) == (ROOT / ALL / "wc@count@1",)
    assert gone(V1, one, Written()) == (ROOT / ALL / "wc@split@0", ROOT / ALL)
    assert [str(p) for p in gone(APART, one, Written())][2:] == [
        f"/acct/barograph{rest}" for rest in ("/run/node-1/instances/wc@split@0", "/run/node-1/instances",
                                              "/run/node-1", "/run", "")
    ]  # fmt: skip


def test_without_a_fence_all_instances_together_have_no_limit() -> None:
    after = wanted(2, None, {A: ThreadLimit(11, 40.0)})
    assert after.quota is None
    assert ("instances/cpu.max", "max") not in steps(V2, Written(), after)


def test_long_names_are_shortened_and_stay_different() -> None:
    names = {group_name(Instance("t" * 180, f"{letter}" * 180, 3)) for letter in "ab"}
    assert len(names) == 2
    assert all(len(name) < 200 and name.endswith("@3") for name in names)


def test_a_thread_is_a_number() -> None:
    with pytest.raises(BadInput, match="thread must be a whole number of at least 1"):
        ThreadLimit(0, 10.0)


class Kernel:
    """Refuses what the kernel refuses for v1 and v2."""

    def __init__(self, node: NodeControlGroup, fence: Quota | None) -> None:
        self.node = node
        self.quota: dict[Path, int] = {ROOT: -1 if fence is None else fence.quota_us}
        self.period: dict[Path, int] = {ROOT: 100_000 if fence is None else fence.period_us}
        self.saves: dict[Path, int] = {}
        self.threaded: set[Path] = set()
        self.cpu_below: set[Path] = set()
        self.where: dict[str, Path] = {}

    def write(self, path: Path, content: str) -> None:
        group, file = path.parent, path.name
        if group not in self.quota:
            assert group.parent in self.quota, f"{group} has no parent"
            self.quota[group], self.period[group] = -1, 100_000
        if file == "cpu.cfs_quota_us":
            self.quota[group] = int(content)
            assert int(content) == -1 or int(content) >= 1000
        elif file == "cpu.cfs_period_us":
            self.period[group] = int(content)
            assert 1000 <= int(content) <= 1_000_000
        elif file == "cpu.max":
            assert group.parent in self.cpu_below, "the parent does not pass the cpu controller on"
            quota, _, period = content.partition(" ")
            self.quota[group] = -1 if quota == "max" else int(quota)
            self.period[group] = int(period or self.period[group])
        elif file == self.node.savings:
            self.saves[group] = int(content)
        elif file == "cgroup.type":
            self.threaded.add(group)
        elif file == "cgroup.subtree_control":
            assert content == "-cpu" or all(g in self.threaded for g in self.quota if g.parent == group)
            (self.cpu_below.add if content == "+cpu" else self.cpu_below.discard)(group)
        elif file in ("tasks", "cgroup.threads"):
            assert file == self.node.threads
            assert self.node.version == 1 or group == ROOT or group in self.threaded
            assert group == ROOT or self.quota[group] != -1, "a thread in a group that has no limit yet"
            self.where[content] = group
        assert self.quota[group] == -1 or self.saves.get(group, 0) <= self.quota[group], "the burst is above the quota"
        if self.node.version == 1:
            for each in self.quota:
                self.check(each)

    def check(self, group: Path) -> None:
        above = group
        while self.quota[group] != -1 and above != ROOT:
            above = above.parent
            if self.quota[above] != -1:
                mine, theirs = (Quota(self.quota[g], self.period[g]) for g in (group, above))
                assert not mine.above(theirs), f"{group} would have more than {above}"
                return


_held = st.dictionaries(
    st.sampled_from([Instance("t", o, i) for o in "abc" for i in range(2)]),
    st.builds(ThreadLimit, st.integers(1, 9), st.floats(0, 150)),
    max_size=6,
).filter(lambda held: len({h.tid for h in held.values()}) == len(held))
_fence = st.none() | st.builds(Quota, st.integers(1_000, 400_000), st.just(100_000))


@settings(max_examples=60, deadline=None)
@given(
    _fence,
    st.lists(_held, min_size=1, max_size=4),
    st.sampled_from([V1, V2, replace(V1, saves=True), replace(V2, saves=True)]),
)
def test_no_step_is_ever_refused_and_every_thread_is_in_its_group(
    fence: Quota | None, turns: list[dict[Instance, ThreadLimit]], node: NodeControlGroup
) -> None:
    kernel, before = Kernel(node, fence), Written()
    for held in turns:
        after = wanted(node.version, fence, held)
        for path, content in writes(node, before, after):
            kernel.write(path, content)
        for group in gone(node, before, after):
            assert group not in kernel.where.values(), "a group with threads cannot be removed"
            del kernel.quota[group]
            kernel.saves.pop(group, None)
            kernel.threaded.discard(group)
        assert {str(h.tid): node.group(i) for i, h in held.items()} == {
            t: g for t, g in kernel.where.items() if g != ROOT
        }
        before = after


@settings(max_examples=60, deadline=None)
@given(_fence, _fence, _held.filter(bool), _held.filter(bool))
def test_the_fence_may_change_between_two_lists(
    old: Quota | None, new: Quota | None, first: dict[Instance, ThreadLimit], then: dict[Instance, ThreadLimit]
) -> None:
    """Lowered: the groups inside follow first. Raised: the fence goes first."""
    kernel = Kernel(V1, old)
    before, after = wanted(1, old, first), wanted(1, new, then)
    lower = new is not None and (old is None or old.above(new))
    file = ROOT / "cpu.cfs_quota_us"
    fence = [Write(file, "-1"), Write(file, "-1" if new is None else str(new.quota_us))]
    inside = [*writes(V1, before, after)]
    for path, content in [*writes(V1, Written(), before), *(inside + fence if lower else fence + inside)]:
        kernel.write(path, content)


@settings(max_examples=60, deadline=None)
@given(_fence, _held.filter(bool))
def test_other_threads_are_never_starved(fence: Quota | None, held: dict[Instance, ThreadLimit]) -> None:
    after = wanted(1, fence, held)
    assert all(s.weight <= 1024 for s in after.groups.values()), "an instance outweighs a plain thread"
    if fence is not None and fence.quota_us >= 5_000:
        assert after.quota is not None
        assert after.quota.pct <= 0.951 * fence.pct
