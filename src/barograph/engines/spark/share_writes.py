"""What is written where so that every instance's thread gets its CPU share: a list of (path, content), in order.

Pure: it reads nothing and writes nothing. A node's fenced group (``fence.py``) gets a group ``instances`` below it, and
that one group for each instance, with the instance's thread in it:

    barograph/<run>/<node>                     the fence; network, GC and compiler threads stay here
    barograph/<run>/<node>/instances           all instances together: the fence less a reserve for the others
    barograph/<run>/<node>/instances/<name>    one instance: its quota

The group of a path is made before something is written into it, if it is not there yet. v1 moves single threads
(``tasks``); v2 does so only inside a threaded subtree, whose root is the node's group.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from barograph.engines.spark.fence import LEAST_QUOTA_US
from barograph.model import Instance
from barograph.model.checks import require_number, require_whole

ALL = "instances"
# A throttled thread waits for the rest of its period, and where that is in the middle of Java code, all threads of its
# JVM wait for it at the next collection of garbage. So a share has the shortest of these in which the kernel takes it.
PERIODS_US = (20_000, 30_000, 50_000, 100_000)
SHORT_PERIOD_US, LONG_PERIOD_US = PERIODS_US[0], PERIODS_US[-1]
LEAST_SHARE_PCT = 100.0 * LEAST_QUOTA_US / LONG_PERIOD_US
# Of a node's CPU, kept from the instances. Without it instances could use the fence's quota up at the beginning of a
# period, and the kernel would stop the whole node, network and GC too, until the next.
RESERVE_PCT = 5.0
_THREAD_WEIGHT = {1: 1024, 2: 100}  # what the scheduler counts a plain thread for
_WEIGHTS = {1: (2, 262_144), 2: (1, 10_000)}


class Write(NamedTuple):
    path: Path
    content: str


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A node's group. accounts: where usage is counted, if that is another hierarchy (v1, cpuacct mounted apart).

    saves: whether the kernel lets a group save what it left of its last periods (since 5.14)."""

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
        """The file with what a group may save."""
        return "cpu.cfs_burst_us" if self.version == 1 else "cpu.max.burst"

    @property
    def accounts_home(self) -> Path | None:
        """Where threads are counted that are no instance's: outside of our room, as they were born."""
        return None if self.accounts is None else self.accounts.parents[2]


@dataclass(frozen=True, slots=True)
class Quota:
    """So much CPU time in each period. Compared exactly, as the kernel does, not as rounded fractions."""

    quota_us: int
    period_us: int

    def above(self, other: "Quota") -> bool:
        return self.quota_us * other.period_us > other.quota_us * self.period_us

    @property
    def pct(self) -> float:
        return 100.0 * self.quota_us / self.period_us


@dataclass(frozen=True, slots=True)
class Held:
    """An instance's thread and the share it is to have."""

    tid: int
    share_pct: float

    def __post_init__(self) -> None:
        require_whole("thread", self.tid, 1)
        require_number("share", self.share_pct)


@dataclass(frozen=True, slots=True)
class Seat:
    """An instance's group as it is written."""

    tid: int
    quota: Quota
    weight: int


@dataclass(frozen=True, slots=True)
class Written:
    """All that is written below a node's group; empty where nothing is. weight, quota: of all instances together."""

    weight: int = 0
    quota: Quota | None = None
    seats: Mapping[Instance, Seat] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "seats", MappingProxyType(dict(self.seats)))


def group_name(instance: Instance) -> str:
    """``@`` is in no name, so names never meet each other or a file of the kernel."""
    name = str(instance).replace("/", "@")
    if len(name.encode()) <= 200:
        return name
    return f"long@{sha256(name.encode()).hexdigest()[:32]}@{instance.index}"


def quota_of(share_pct: float, limit: Quota | None = None) -> Quota:
    """The share as a quota: at most a core, at most the limit, at least what the kernel takes."""
    share = min(100.0, max(LEAST_SHARE_PCT, share_pct))
    period_us = next((p for p in PERIODS_US if share * p >= 100 * LEAST_QUOTA_US), LONG_PERIOD_US)
    quota = Quota(max(LEAST_QUOTA_US, int(share * period_us / 100.0)), period_us)
    return limit if limit is not None and quota.above(limit) else quota


def wanted(version: Literal[1, 2], fence: Quota | None, held: Mapping[Instance, Held]) -> Written:
    """What is to be written. fence: the node's own quota, None where it has none."""
    if not held:
        return Written()
    together = None if fence is None else _less_reserve(fence)
    # A group competes with the threads beside it as if it were one thread. So that nobody starves, an instance counts
    # for its share of a plain thread and all of them for the sum: a network or GC thread then outweighs any instance,
    # and however many threads wake up, the instances still weigh what was allotted to them.
    seats = {
        instance: Seat(h.tid, quota := quota_of(h.share_pct, together), _weight(version, quota.pct))
        for instance, h in sorted(held.items())
    }
    return Written(_weight(version, sum(s.quota.pct for s in seats.values())), together, seats)


def writes(node: NodeGroup, before: Written, after: Written) -> tuple[Write, ...]:
    """From what is written to what is to be: only what differs, in an order that the kernel takes at every step."""
    return tuple(_writes(node, before, after))


def gone(node: NodeGroup, before: Written, after: Written) -> tuple[Path, ...]:
    """Groups to remove afterwards, innermost first."""
    left = [i for i in before.seats if i not in after.seats]
    roots = [node.path / ALL] if before.seats and not after.seats else []
    found = [*(node.group(i) for i in left), *roots]
    if node.accounts is not None:
        accounts = [node.accounts / ALL, *node.accounts.parents[:2], node.accounts] if roots else []
        found += [*(node.account(i) for i in left), *sorted(accounts, reverse=True)]
    return tuple(found)


def _writes(node: NodeGroup, before: Written, after: Written) -> Iterator[Write]:
    staying = {s.tid for s in after.seats.values()}
    for seat in before.seats.values():
        if seat.tid not in staying:
            yield from _home(node, seat.tid)
    fresh = [i for i in after.seats if i not in before.seats]
    if node.version == 2:
        yield from _threaded(node, before, after, fresh)
    every = node.path / ALL
    # v1 refuses a child's quota above its parent's, whichever of the two is written. Without a quota of its own the
    # parent passes on its own parent's, which is never below; so it is lifted first and limited last.
    change = after.quota != before.quota and bool(after.seats)
    if change and before.quota is not None:
        yield from _lift(node, every)
    if change:  # groups that are about to be removed still count
        for instance in before.seats:
            if instance not in after.seats:
                yield from _lift(node, node.group(instance))
    if after.seats and after.weight != before.weight:
        yield _weigh(node, every, after.weight)
    for instance, seat in after.seats.items():
        old = before.seats.get(instance)
        if old is None or old.weight != seat.weight:
            yield _weigh(node, node.group(instance), seat.weight)
        if old is None or old.quota != seat.quota:
            yield from _limit_one(node, node.group(instance), seat.quota, None if old is None else old.quota)
    if change and after.quota is not None:
        yield from _limit(node, every, after.quota, None)
    # Threads come last, so that none ever runs in a group that has no limit yet.
    for instance, seat in after.seats.items():
        old = before.seats.get(instance)
        if old is None or old.tid != seat.tid:
            yield Write(node.group(instance) / node.threads, str(seat.tid))
            if node.accounts is not None:
                yield Write(node.account(instance) / "tasks", str(seat.tid))
    if node.version == 2 and before.seats and not after.seats:
        yield Write(every / "cgroup.subtree_control", "-cpu")
        yield Write(node.path / "cgroup.subtree_control", "-cpu")


def _threaded(node: NodeGroup, before: Written, after: Written, fresh: list[Instance]) -> Iterator[Write]:
    """A group that holds processes hands cpu down only to threaded groups, so they are made so first."""
    first = bool(after.seats) and not before.seats
    if first:
        yield Write(node.path / ALL / "cgroup.type", "threaded")
    for instance in fresh:
        yield Write(node.group(instance) / "cgroup.type", "threaded")
    if first:
        yield Write(node.path / "cgroup.subtree_control", "+cpu")
        yield Write(node.path / ALL / "cgroup.subtree_control", "+cpu")


def home_writes(node: NodeGroup, tid: int) -> tuple[Write, ...]:
    """A thread goes back to where a node's other threads are."""
    return tuple(_home(node, tid))


def _home(node: NodeGroup, tid: int) -> Iterator[Write]:
    yield Write(node.path / node.threads, str(tid))
    if node.accounts_home is not None:
        yield Write(node.accounts_home / "tasks", str(tid))


def _less_reserve(fence: Quota) -> Quota:
    """The same rate in a short period, less the reserve, rounded down so that it is never above the fence."""
    part = 1.0 - RESERVE_PCT / 100.0
    period_us = SHORT_PERIOD_US
    while (quota_us := int(fence.quota_us * period_us * part) // fence.period_us) < LEAST_QUOTA_US:
        if period_us >= fence.period_us:
            return fence  # so small a node that nothing can be kept back
        period_us = fence.period_us
    return Quota(quota_us, period_us)


def _weight(version: Literal[1, 2], share_pct: float) -> int:
    least, most = _WEIGHTS[version]
    return min(most, max(least, round(_THREAD_WEIGHT[version] * share_pct / 100.0)))


def _weigh(node: NodeGroup, group: Path, weight: int) -> Write:
    return Write(group / ("cpu.shares" if node.version == 1 else "cpu.weight"), str(weight))


def _lift(node: NodeGroup, group: Path) -> Iterator[Write]:
    yield Write(group / "cpu.cfs_quota_us", "-1") if node.version == 1 else Write(group / "cpu.max", "max")


def _limit_one(node: NodeGroup, group: Path, quota: Quota, old: Quota | None) -> Iterator[Write]:
    """An instance's limit. Rows come in handfuls: who left some of its last periods may use it now, up to one quota
    more, and does not wait for the next period although it uses less than its share. More than its share it never gets
    for long. The kernel refuses savings above the quota."""
    if node.saves and old is not None and quota.quota_us < old.quota_us:
        yield Write(group / node.savings, "0")
    yield from _limit(node, group, quota, old)
    if node.saves:
        yield Write(group / node.savings, str(quota.quota_us))


def _limit(node: NodeGroup, group: Path, quota: Quota, old: Quota | None) -> Iterator[Write]:
    if node.version == 2:
        yield Write(group / "cpu.max", f"{quota.quota_us} {quota.period_us}")
        return
    # Two files, and between the two writes old and new mix. Without a quota any period is good.
    if old is None or old.period_us != quota.period_us:
        yield Write(group / "cpu.cfs_quota_us", "-1")
        yield Write(group / "cpu.cfs_period_us", str(quota.period_us))
    yield Write(group / "cpu.cfs_quota_us", str(quota.quota_us))
