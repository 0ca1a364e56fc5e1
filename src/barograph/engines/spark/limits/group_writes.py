"""Which files must be written so that every instance's thread has its CPU limit: a list of (path, content), in order.

Pure: it reads nothing and writes nothing. A node's group (``cluster/node_limit.py``) gets a group ``instances`` below
it, and in that one group for each instance, with the instance's thread in it:

    barograph/<run>/<node>                     the fence; network, GC and compiler threads stay here
    barograph/<run>/<node>/instances           all instances together: the fence less a reserve for the others
    barograph/<run>/<node>/instances/<name>    one instance: its quota

A group that does not exist yet is made before the first write into it. v1 moves single threads (``tasks``); v2 does so
only inside a threaded subtree, whose root is the node's group.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from barograph.engines.spark.cluster.node_limit import LEAST_QUOTA_US
from barograph.model import Instance
from barograph.model.checks import require_number, require_whole

ALL = "instances"
# A throttled thread waits for the rest of its period, and if that happens inside Java code, all threads of its JVM wait
# for it at the next garbage collection. So a limit gets the shortest of these periods that the kernel accepts for it.
PERIODS_US = (20_000, 30_000, 50_000, 100_000)
SHORT_PERIOD_US, LONG_PERIOD_US = PERIODS_US[0], PERIODS_US[-1]
LEAST_LIMIT_PCT = 100.0 * LEAST_QUOTA_US / LONG_PERIOD_US
# Part of a node's CPU that instances cannot use. Without it instances could use up the fence's quota at the beginning
# of a period, and the kernel would stop the whole node, including network and GC, until the next one.
RESERVE_PCT = 5.0
_THREAD_WEIGHT = {1: 1024, 2: 100}  # the scheduler's weight of a plain thread
_WEIGHTS = {1: (2, 262_144), 2: (1, 10_000)}


class Write(NamedTuple):
    path: Path
    content: str


@dataclass(frozen=True, slots=True)
class NodeControlGroup:
    """A node's group. accounts: where CPU usage is counted, if in another hierarchy (v1 with cpuacct mounted apart).

    saves: whether the kernel lets a group save unused quota of its last periods (burst, since 5.14)."""

    version: Literal[1, 2]
    path: Path
    accounts: Path | None = None
    saves: bool = False

    @property
    def threads(self) -> str:
        return "tasks" if self.version == 1 else "cgroup.threads"

    def group(self, instance: Instance) -> Path:
        return self.path / ALL / group_name(instance)

    def account(self, instance: Instance) -> Path:
        """Where the instance's usage is counted."""
        return self.group(instance) if self.accounts is None else self.accounts / ALL / group_name(instance)

    @property
    def savings(self) -> str:
        """The file with the quota that a group may save (burst)."""
        return "cpu.cfs_burst_us" if self.version == 1 else "cpu.max.burst"

    @property
    def accounts_home(self) -> Path | None:
        """Where threads that belong to no instance are counted: outside of our groups, as at their start."""
        return None if self.accounts is None else self.accounts.parents[2]


@dataclass(frozen=True, slots=True)
class Quota:
    """CPU time in each period. Compared exactly, as the kernel does, not as rounded fractions."""

    quota_us: int
    period_us: int

    def above(self, other: "Quota") -> bool:
        return self.quota_us * other.period_us > other.quota_us * self.period_us

    @property
    def pct(self) -> float:
        return 100.0 * self.quota_us / self.period_us


@dataclass(frozen=True, slots=True)
class ThreadLimit:
    """An instance's thread and the most CPU it may use, in per cent of a core."""

    tid: int
    limit_pct: float

    def __post_init__(self) -> None:
        require_whole("thread", self.tid, 1)
        require_number("limit", self.limit_pct)


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """An instance's group as it is written."""

    tid: int
    quota: Quota
    weight: int


@dataclass(frozen=True, slots=True)
class Written:
    """Everything written below a node's group; empty if nothing is. weight, quota: of all instances together."""

    weight: int = 0
    quota: Quota | None = None
    groups: Mapping[Instance, InstanceGroup] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", MappingProxyType(dict(self.groups)))


def group_name(instance: Instance) -> str:
    """``@`` is in no name of the model, so group names clash neither with each other nor with a file of the kernel."""
    name = str(instance).replace("/", "@")
    if len(name.encode()) <= 200:
        return name
    return f"long@{sha256(name.encode()).hexdigest()[:32]}@{instance.index}"


def quota_of(limit_pct: float, together: Quota | None = None) -> Quota:
    """The limit as a quota: at most a core, at most ``together``, at least what the kernel accepts."""
    pct = min(100.0, max(LEAST_LIMIT_PCT, limit_pct))
    period_us = next((p for p in PERIODS_US if pct * p >= 100 * LEAST_QUOTA_US), LONG_PERIOD_US)
    quota = Quota(max(LEAST_QUOTA_US, int(pct * period_us / 100.0)), period_us)
    return together if together is not None and quota.above(together) else quota


def wanted(version: Literal[1, 2], fence: Quota | None, held: Mapping[Instance, ThreadLimit]) -> Written:
    """What should be written. fence: the node's own quota, None if it has none."""
    if not held:
        return Written()
    together = None if fence is None else _less_reserve(fence)
    # A group competes with the threads beside it as if it were one thread. So that no thread starves, an instance
    # weighs its limit's part of a plain thread, and all instances together weigh the sum: a network or GC thread then
    # outweighs any single instance, and however many threads wake up, the instances keep the weight of their limits.
    groups = {
        instance: InstanceGroup(h.tid, quota := quota_of(h.limit_pct, together), _weight(version, quota.pct))
        for instance, h in sorted(held.items())
    }
    return Written(_weight(version, sum(s.quota.pct for s in groups.values())), together, groups)


def writes(node: NodeControlGroup, before: Written, after: Written) -> tuple[Write, ...]:
    """The writes from ``before`` to ``after``: only differences, in an order the kernel accepts at every step."""
    return tuple(_writes(node, before, after))


def gone(node: NodeControlGroup, before: Written, after: Written) -> tuple[Path, ...]:
    """Groups to remove afterwards, innermost first."""
    left = [i for i in before.groups if i not in after.groups]
    roots = [node.path / ALL] if before.groups and not after.groups else []
    found = [*(node.group(i) for i in left), *roots]
    if node.accounts is not None:
        accounts = [node.accounts / ALL, *node.accounts.parents[:2], node.accounts] if roots else []
        found += [*(node.account(i) for i in left), *sorted(accounts, reverse=True)]
    return tuple(found)


def _writes(node: NodeControlGroup, before: Written, after: Written) -> Iterator[Write]:
    staying = {s.tid for s in after.groups.values()}
    for group in before.groups.values():
        if group.tid not in staying:
            yield from _home(node, group.tid)
    fresh = [i for i in after.groups if i not in before.groups]
    if node.version == 2:
        yield from _threaded(node, before, after, fresh)
    every = node.path / ALL
    # v1 refuses a child's quota above its parent's, whichever of the two is written. A parent without a quota has the
    # quota of its own parent, which is never below; so the parent's quota is lifted first and written last.
    change = after.quota != before.quota and bool(after.groups)
    if change and before.quota is not None:
        yield from _lift(node, every)
    if change:  # groups that are about to be removed still count
        for instance in before.groups:
            if instance not in after.groups:
                yield from _lift(node, node.group(instance))
    if after.groups and after.weight != before.weight:
        yield _weigh(node, every, after.weight)
    for instance, group in after.groups.items():
        old = before.groups.get(instance)
        if old is None or old.weight != group.weight:
            yield _weigh(node, node.group(instance), group.weight)
        if old is None or old.quota != group.quota:
            yield from _limit_one(node, node.group(instance), group.quota, None if old is None else old.quota)
    if change and after.quota is not None:
        yield from _limit(node, every, after.quota, None)
    # Threads come last, so that no thread runs in a group that has no limit yet.
    for instance, group in after.groups.items():
        old = before.groups.get(instance)
        if old is None or old.tid != group.tid:
            yield Write(node.group(instance) / node.threads, str(group.tid))
            if node.accounts is not None:
                yield Write(node.account(instance) / "tasks", str(group.tid))
    if node.version == 2 and before.groups and not after.groups:
        yield Write(every / "cgroup.subtree_control", "-cpu")
        yield Write(node.path / "cgroup.subtree_control", "-cpu")


def _threaded(node: NodeControlGroup, before: Written, after: Written, fresh: list[Instance]) -> Iterator[Write]:
    """A group with processes passes the cpu controller only to threaded groups, so groups become threaded first."""
    first = bool(after.groups) and not before.groups
    if first:
        yield Write(node.path / ALL / "cgroup.type", "threaded")
    for instance in fresh:
        yield Write(node.group(instance) / "cgroup.type", "threaded")
    if first:
        yield Write(node.path / "cgroup.subtree_control", "+cpu")
        yield Write(node.path / ALL / "cgroup.subtree_control", "+cpu")


def home_writes(node: NodeControlGroup, tid: int) -> tuple[Write, ...]:
    """Move a thread back to the group of the node's other threads."""
    return tuple(_home(node, tid))


def _home(node: NodeControlGroup, tid: int) -> Iterator[Write]:
    yield Write(node.path / node.threads, str(tid))
    if node.accounts_home is not None:
        yield Write(node.accounts_home / "tasks", str(tid))


def _less_reserve(fence: Quota) -> Quota:
    """The same rate in a short period, less the reserve, rounded down so that it is never above the fence."""
    part = 1.0 - RESERVE_PCT / 100.0
    period_us = SHORT_PERIOD_US
    while (quota_us := int(fence.quota_us * period_us * part) // fence.period_us) < LEAST_QUOTA_US:
        if period_us >= fence.period_us:
            return fence  # the node is too small for a reserve
        period_us = fence.period_us
    return Quota(quota_us, period_us)


def _weight(version: Literal[1, 2], limit_pct: float) -> int:
    least, most = _WEIGHTS[version]
    return min(most, max(least, round(_THREAD_WEIGHT[version] * limit_pct / 100.0)))


def _weigh(node: NodeControlGroup, group: Path, weight: int) -> Write:
    return Write(group / ("cpu.shares" if node.version == 1 else "cpu.weight"), str(weight))


def _lift(node: NodeControlGroup, group: Path) -> Iterator[Write]:
    yield Write(group / "cpu.cfs_quota_us", "-1") if node.version == 1 else Write(group / "cpu.max", "max")


def _limit_one(node: NodeControlGroup, group: Path, quota: Quota, old: Quota | None) -> Iterator[Write]:
    """An instance's limit. Rows come in bursts: an instance that left quota of its last periods unused may use it now,
    up to one quota more, instead of waiting for the next period. Over a longer time it still gets no more than its
    limit. The kernel refuses savings above the quota."""
    if node.saves and old is not None and quota.quota_us < old.quota_us:
        yield Write(group / node.savings, "0")
    yield from _limit(node, group, quota, old)
    if node.saves:
        yield Write(group / node.savings, str(quota.quota_us))


def _limit(node: NodeControlGroup, group: Path, quota: Quota, old: Quota | None) -> Iterator[Write]:
    if node.version == 2:
        yield Write(group / "cpu.max", f"{quota.quota_us} {quota.period_us}")
        return
    # Two files: between the two writes old and new values mix. Without a quota any period is accepted.
    if old is None or old.period_us != quota.period_us:
        yield Write(group / "cpu.cfs_quota_us", "-1")
        yield Write(group / "cpu.cfs_period_us", str(quota.period_us))
    yield Write(group / "cpu.cfs_quota_us", str(quota.quota_us))
