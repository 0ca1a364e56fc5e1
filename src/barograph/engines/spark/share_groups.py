"""Holds the CPU shares of one node's instances: applies what ``share_writes`` lists, reads usage back, cleans up.

Shares change at once, without a cut. Only threads that already are in the node's own group are ever moved, so that a
thread number that was given to somebody else meanwhile does no harm. Where groups cannot be written that is said once,
and everything goes on without limits.
"""

import contextlib
import errno
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from barograph.engines.spark.fence import Groups, accounts_of, quota_us
from barograph.engines.spark.runs import Run
from barograph.engines.spark.share_writes import (
    ALL,
    Held,
    NodeGroup,
    Quota,
    Write,
    Written,
    gone,
    home_writes,
    wanted,
    writes,
)
from barograph.model import Instance

_REMOVAL_S = 2.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Of an instance's group since it was made. cpu_s is None where the kernel does not count it."""

    cpu_s: float | None
    periods: int
    throttled: int
    throttled_s: float


def node_group(groups: Groups, node: str) -> NodeGroup:
    """A node's group of a run, with the place where its usage is counted."""
    path = groups.node(node)
    accounts = accounts_of(groups)
    found = NodeGroup(groups.version, path, None if accounts is None else accounts / node)
    found = replace(found, saves=(path / found.savings).exists())
    # Shares do without counting where only that is forbidden.
    home = found.accounts_home
    return found if home is None or os.access(home / "tasks", os.W_OK) else replace(found, accounts=None)


def fence_of(node: NodeGroup) -> Quota | None:
    """The node's quota as the kernel has it; None where it has none."""
    if node.version == 2:
        quota, period = (node.path / "cpu.max").read_text().split()
    else:
        quota, period = ((node.path / f"cpu.cfs_{what}_us").read_text().strip() for what in ("quota", "period"))
    return None if quota in ("max", "-1") else Quota(int(quota), int(period))


def _warn(sentence: str) -> None:
    warnings.warn(sentence, RuntimeWarning, stacklevel=3)


class ShareGroups:
    """The groups of one node's instances. A context manager: everything is as before when it ends.

    say: gets the one sentence that is said where groups cannot be written. problem: that sentence; empty while all is
    well. cores: what the node has when it is fenced. A fence may be lifted for a while, and v1 would refuse to put it
    back over a share that had grown beyond it meanwhile.
    """

    def __init__(self, node: NodeGroup, say: Callable[[str], None] = _warn, cores: float | None = None) -> None:
        self.node = node
        self._cores = None if cores is None else Quota(*quota_us(cores))
        self.problem = ""
        self._say = say
        self._held: dict[Instance, Held] = {}
        self._written = Written()
        self._swept = False
        self._lock = threading.Lock()

    def __enter__(self) -> "ShareGroups":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def hold(self, held: Mapping[Instance, Held]) -> tuple[str, ...]:
        """These threads get these shares, from now on and nobody else. What could not be held, one sentence each."""
        with self._lock:
            if self.problem:
                return ()
            present = {i: h for i, h in held.items() if self._is_of_node(h.tid)}
            lost = [f"{i}: thread {h.tid} is not on this node" for i, h in held.items() if i not in present]
            self._held = present
            self._attempt(lambda: self._write(self._limit()))
            return tuple(lost)

    def refence(self, cpu: float) -> None:
        """Give the node another limit. v1 refuses one below that of a group inside it, so the order depends."""
        with self._lock:
            quota = Quota(*quota_us(cpu))
            self._cores = quota
            groups = Groups(self.node.version, self.node.path.parent)

            def change() -> None:
                present = fence_of(self.node)
                if present is None or present.above(quota):
                    self._write(quota)
                groups.fence(self.node.path.name, cpu)
                self._write(quota)

            self._attempt(change)

    def usage(self) -> dict[Instance, Usage]:
        """What each instance used, and how often it was held back. An instance that just left is missing."""
        with self._lock:
            found = {}
            for instance in self._written.seats:
                with contextlib.suppress(OSError, KeyError, ValueError):
                    found[instance] = self._usage(instance)
            return found

    def release(self) -> None:
        """Threads go back, groups are removed; also those that somebody who died had left here."""
        with self._lock:
            self._release()

    # --- below, the lock is held ---

    def _attempt(self, act: Callable[[], None]) -> None:
        """Once more from scratch if it fails: somebody may have tidied up under our hands. Then do without."""
        for last in (False, True):
            try:
                act()
                return
            except OSError as error:
                self._release()
                if last:
                    where = error.filename or self.node.path
                    self.problem = f"CPU shares are not enforced: {where}: {error.strerror or error}"
                    self._say(self.problem)

    def _limit(self) -> Quota | None:
        """The fence that holds, or the one that will again."""
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
        """One write; its group is made if need be. A thread that has just ended needs no group."""
        group = write.path.parent
        if not group.is_dir():
            # Never the node's own group: it is not ours to make.
            root = self.node.path if group.is_relative_to(self.node.path) else self.node.accounts_home
            if root is None or not root.is_dir():
                raise FileNotFoundError(errno.ENOENT, "no such group", str(root))
            group.mkdir(parents=True, exist_ok=True)
        try:
            write.path.write_text(write.content)
        except ProcessLookupError:
            return
        except OSError as error:
            if error.filename is None:  # the kernel refuses at the write, where Python names no file
                error.filename = str(write.path)
            raise

    def _strays_home(self) -> None:
        """A thread that an instance's thread starts is born in its group; it is no instance and goes back."""
        for instance, seat in self._written.seats.items():
            for tid in _threads(self.node.group(instance) / self.node.threads):
                if tid != seat.tid:
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
                            with contextlib.suppress(OSError):
                                self._apply(write)
                self._remove([*groups, room])
            if any(room.is_dir() for room in rooms):
                time.sleep(0.01)  # the kernel takes a moment to let go of a thread that ended
        if self.node.version == 2:
            with contextlib.suppress(OSError):
                (self.node.path / "cgroup.subtree_control").write_text("-cpu")
        if self.node.accounts is not None:
            self._remove([self.node.accounts, *self.node.accounts.parents[:2]])
        self._written = Written()

    def _remove(self, groups: Iterable[Path]) -> None:
        for group in groups:
            with contextlib.suppress(OSError):  # others are in it, or it is gone
                group.rmdir()

    def _is_of_node(self, tid: int) -> bool:
        """Whether the thread is in the node's group or below, by the kernel's own word."""
        place = "/".join(self.node.path.parts[-3:])
        try:
            lines = Path(f"/proc/{tid}/cgroup").read_text().splitlines()
        except OSError:
            return False
        # number:controllers:path; the only v2 hierarchy has no controllers here
        wanted = "cpu" if self.node.version == 1 else ""
        fields = [line.split(":", 2) for line in lines]
        return any(wanted in names.split(",") and f"/{place}/" in f"{path}/" for _, names, path in fields)

    def _usage(self, instance: Instance) -> Usage:
        raw = dict(line.split() for line in (self.node.group(instance) / "cpu.stat").read_text().splitlines())
        periods, throttled = int(raw["nr_periods"]), int(raw["nr_throttled"])
        if self.node.version == 2:
            return Usage(int(raw["usage_usec"]) / 1e6, periods, throttled, int(raw["throttled_usec"]) / 1e6)
        counted = self.node.account(instance) / "cpuacct.usage"
        cpu_s = int(counted.read_text()) / 1e9 if counted.exists() else None
        return Usage(cpu_s, periods, throttled, int(raw["throttled_time"]) / 1e9)


class ClusterShares:
    """The shares of all nodes of an embedded cluster. groups: of its run, or in one sentence why it has none.

    cores: what nodes have when they are fenced; one that is missing, or None, has all it can get.
    """

    def __init__(
        self,
        groups: Groups | str,
        nodes: Iterable[str],
        say: Callable[[str], None] = _warn,
        cores: Mapping[str, float | None] = MappingProxyType({}),
    ) -> None:
        self.problem = ""
        self._say = say
        self._nodes: dict[str, ShareGroups] = {}
        if isinstance(groups, str):
            self._give_up(f"CPU shares are not enforced: {groups}")
        else:
            self._nodes = {n: ShareGroups(node_group(groups, n), self._give_up, cores.get(n)) for n in nodes}

    def __enter__(self) -> "ClusterShares":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def hold(self, held: Mapping[Instance, tuple[str, Held]]) -> tuple[str, ...]:
        """Instance -> its node, thread and share. Whoever is not named has no limit any more."""
        lost = [f"{i}: there is no node {node!r}" for i, (node, _) in held.items() if node not in self._nodes]
        if self.problem:
            return ()
        for name, shares in self._nodes.items():
            lost += shares.hold({i: h for i, (node, h) in held.items() if node == name})
        return tuple(lost)

    def usage(self) -> dict[Instance, Usage]:
        return {i: usage for shares in self._nodes.values() for i, usage in shares.usage().items()}

    def release(self) -> None:
        for shares in self._nodes.values():
            shares.release()

    def _give_up(self, sentence: str) -> None:
        """On one node alone limits would only distort: without all of them there are none, and it is said once."""
        if not self.problem:
            self.problem = sentence
            self._say(sentence)
            for shares in self._nodes.values():
                if not shares.problem:  # the one that speaks has let go of its own
                    shares.release()


def shares_of(run: Run, say: Callable[[str], None] = _warn) -> ClusterShares:
    """Of a cluster that runs, for the one driver that holds them."""
    groups = run.groups if run.groups is not None else run.unfenced_because or "this cluster has no control groups"
    found = ClusterShares(groups, run.settings.node_names(), say, run.settings.node_cpus())
    found.release()  # what a driver that was killed had left
    return found


def _threads(file: Path) -> list[int]:
    try:
        return [int(tid) for tid in file.read_text().split()]
    except OSError:
        return []
