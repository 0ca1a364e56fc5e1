"""CPU limits of the instances on one node: applies what ``group_writes`` lists, reads usage back, cleans up.

Limits change at once, without a cut. Only threads that are already in the node's own group are moved, so that a thread
number that the kernel has given to another process meanwhile does no harm. If groups cannot be written, that is
reported once and everything goes on without limits.
"""

import contextlib
import errno
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from barograph.engines.spark.cluster.node_limit import RunGroups, accounts_of, quota_us
from barograph.engines.spark.limits.group_writes import (
    ALL,
    NodeControlGroup,
    Quota,
    ThreadLimit,
    Write,
    Written,
    gone,
    home_writes,
    wanted,
    writes,
)
from barograph.model import Instance

log = logging.getLogger(__name__)

_REMOVAL_S = 2.0


@dataclass(frozen=True, slots=True)
class GroupUsage:
    """Of an instance's group since it was made. cpu_s is None if the kernel does not count it."""

    cpu_s: float | None
    periods: int
    throttled: int
    throttled_s: float


def node_group(groups: RunGroups, node: str) -> NodeControlGroup:
    """A node's group of a run, and where its CPU usage is counted."""
    path = groups.node(node)
    accounts = accounts_of(groups)
    found = NodeControlGroup(groups.version, path, None if accounts is None else accounts / node)
    found = replace(found, saves=(path / found.savings).exists())
    # If only counting is forbidden, limits work without it.
    home = found.accounts_home
    return found if home is None or os.access(home / "tasks", os.W_OK) else replace(found, accounts=None)


def fence_of(node: NodeControlGroup) -> Quota | None:
    """The node's quota as the kernel has it; None if it has none."""
    if node.version == 2:
        quota, period = (node.path / "cpu.max").read_text().split()
    else:
        quota, period = ((node.path / f"cpu.cfs_{what}_us").read_text().strip() for what in ("quota", "period"))
    return None if quota in ("max", "-1") else Quota(int(quota), int(period))


def warn(sentence: str) -> None:
    warnings.warn(sentence, RuntimeWarning, stacklevel=3)


class NodeLimits:
    """The limits of one node's instances. A context manager: at its end all groups are removed.

    say: called once with a sentence if groups cannot be written. problem: that sentence, else empty. cores: of the
    node's fence. A fence may be lifted for a while, and v1 would refuse to write it again if an instance's limit had
    grown above it meanwhile.
    """

    def __init__(self, node: NodeControlGroup, say: Callable[[str], None] = warn, cores: float | None = None) -> None:
        self.node = node
        self._cores = None if cores is None else Quota(*quota_us(cores))
        self.problem = ""
        self._say = say
        self._held: dict[Instance, ThreadLimit] = {}
        self._written = Written()
        self._swept = False
        self._lock = threading.Lock()

    def __enter__(self) -> "NodeLimits":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def hold(self, held: Mapping[Instance, ThreadLimit]) -> tuple[str, ...]:
        """Limit these threads and no others from now on. Returns one sentence for each that could not be limited."""
        with self._lock:
            if self.problem:
                return ()
            present = {i: h for i, h in held.items() if self._is_of_node(h.tid)}
            lost = [f"{i}: thread {h.tid} is not on this node" for i, h in held.items() if i not in present]
            self._held = present
            self._attempt(lambda: self._write(self._limit()))
            return tuple(lost)

    def usage(self) -> dict[Instance, GroupUsage]:
        """What each instance used, and how often it was throttled. An instance that has just left is missing."""
        with self._lock:
            found = {}
            for instance in self._written.groups:
                with contextlib.suppress(OSError, KeyError, ValueError):  # its group has just been removed
                    found[instance] = self._usage(instance)
            return found

    def release(self) -> None:
        """Move threads back and remove groups, including those that a killed process had left here."""
        with self._lock:
            self._release()

    # --- below, the lock is held ---

    def _attempt(self, act: Callable[[], None]) -> None:
        """Try again from scratch if it fails, since another process may have removed groups meanwhile. Then give up."""
        for last in (False, True):
            try:
                act()
                return
            except OSError as error:
                self._release()
                where = error.filename or self.node.path
                if not last:
                    log.warning("CPU limits could not be written: %s: %s; they are written anew", where, error.strerror)
                else:
                    self.problem = f"CPU limits are not enforced: {where}: {error.strerror or error}"
                    self._say(self.problem)

    def _limit(self) -> Quota | None:
        """The fence that is in force, or the one that will be written again."""
        fence, cores = fence_of(self.node), self._cores
        return cores if fence is None or (cores is not None and fence.above(cores)) else fence

    def _write(self, fence: Quota | None) -> None:
        if not self._swept:
            self._release()
            self._swept = True
        after = wanted(self.node.version, fence, self._held)
        self._strays_home()
        removed = gone(self.node, self._written, after)
        for write in writes(self.node, self._written, after):
            self._apply(write)
        self._written = after
        self._remove(removed)

    def _apply(self, write: Write) -> None:
        """One write. Its group is made if it does not exist. A thread that has just ended needs no group."""
        group = write.path.parent
        if not group.is_dir():
            # Never the node's own group: the cluster makes it.
            root = self.node.path if group.is_relative_to(self.node.path) else self.node.accounts_home
            if root is None or not root.is_dir():
                raise FileNotFoundError(errno.ENOENT, "no such group", str(root))
            group.mkdir(parents=True, exist_ok=True)
        try:
            write.path.write_text(write.content)
        except ProcessLookupError:
            return
        except OSError as error:
            if error.filename is None:  # Python names no file when the kernel refuses the write
                error.filename = str(write.path)
            raise

    def _strays_home(self) -> None:
        """A thread that an instance's thread starts begins in its group; it is not an instance, so it is moved back."""
        for instance, group in self._written.groups.items():
            for tid in _threads(self.node.group(instance) / self.node.threads):
                if tid != group.tid:
                    for write in home_writes(self.node, tid):
                        self._apply(write)

    def _release(self) -> None:
        every = self.node.path / ALL
        rooms = [every] + ([] if self.node.accounts is None else [self.node.accounts / ALL])
        deadline = time.monotonic() + _REMOVAL_S
        while any(room.is_dir() for room in rooms) and time.monotonic() < deadline:
            for room in rooms:
                groups = [p for p in room.iterdir() if p.is_dir()] if room.is_dir() else []
                for group in groups:
                    for tid in _threads(group / self.node.threads):
                        for write in home_writes(self.node, tid):
                            with contextlib.suppress(OSError):  # tried again below until the deadline
                                self._apply(write)
                self._remove([*groups, room])
            if any(room.is_dir() for room in rooms):
                time.sleep(0.01)  # the kernel needs a moment after a thread ended
        if left := [str(room) for room in rooms if room.is_dir()]:
            log.warning("control groups could not be removed: %s; they stay until the node's end", ", ".join(left))
        if self.node.version == 2:
            with contextlib.suppress(OSError):  # groups that are still there keep it on; they were reported
                (self.node.path / "cgroup.subtree_control").write_text("-cpu")
        if self.node.accounts is not None:
            self._remove([self.node.accounts, *self.node.accounts.parents[:2]])
        self._written = Written()

    def _remove(self, groups: Iterable[Path]) -> None:
        for group in groups:
            with contextlib.suppress(OSError):  # it is in use, or already removed
                group.rmdir()

    def _is_of_node(self, tid: int) -> bool:
        """Whether the kernel shows the thread in the node's group or below."""
        place = "/".join(self.node.path.parts[-3:])
        try:
            lines = Path(f"/proc/{tid}/cgroup").read_text().splitlines()
        except OSError:
            return False
        # number:controllers:path; the line of v2 has no controllers
        wanted = "cpu" if self.node.version == 1 else ""
        fields = [line.split(":", 2) for line in lines]
        return any(wanted in names.split(",") and f"/{place}/" in f"{path}/" for _, names, path in fields)

    def _usage(self, instance: Instance) -> GroupUsage:
        raw = dict(line.split() for line in (self.node.group(instance) / "cpu.stat").read_text().splitlines())
        periods, throttled = int(raw["nr_periods"]), int(raw["nr_throttled"])
        if self.node.version == 2:
            return GroupUsage(int(raw["usage_usec"]) / 1e6, periods, throttled, int(raw["throttled_usec"]) / 1e6)
        counted = self.node.account(instance) / "cpuacct.usage"
        cpu_s = int(counted.read_text()) / 1e9 if counted.exists() else None
        return GroupUsage(cpu_s, periods, throttled, int(raw["throttled_time"]) / 1e9)


def _threads(file: Path) -> list[int]:
    try:
        return [int(tid) for tid in file.read_text().split()]
    except OSError:
        return []
