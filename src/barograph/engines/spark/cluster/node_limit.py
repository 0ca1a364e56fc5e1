"""The CPU fence of a node: a control group that holds the node's worker process and all its executors.

Groups are ``barograph/<run>/<node>``. They are made before the node starts, so that executors start inside them, and
have no limit at first, because a start is not part of a measurement; the limit is written once the node is up. The
groups of instances, if there are any, are below: executors make them. Both versions of control groups are supported:
v1 (``cpu.cfs_quota_us``) and v2 (``cpu.max``).
"""

import contextlib
import logging
import re
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from barograph.model.checks import require

# A node that has used up its quota stops for the rest of its period, which a slow core would not do: so it is short.
log = logging.getLogger(__name__)

PERIOD_US = 20_000
LONG_PERIOD_US = 100_000  # for nodes so small that the kernel would hand out the quota of a short period in one slice
LEAST_QUOTA_US = 1_000  # the kernel refuses less
_SLICE_US = 5_000  # the kernel hands out quota in slices of this size
ROOM = "barograph"


@dataclass(frozen=True, slots=True)
class Tree:
    """A place where groups could be made, if the kernel allows it."""

    version: Literal[1, 2]
    path: Path


@dataclass(frozen=True, slots=True)
class RunGroups:
    """The group of one run; one group for each node below it."""

    version: Literal[1, 2]
    path: Path

    def node(self, name: str) -> Path:
        return self.path / name

    def fence(self, node: str, cpu: float) -> None:
        """Limit the node to so many cores from now on."""
        group = self.node(node)
        if self.version == 1:
            # The kernel refuses a quota below that of a group further down. Executors write theirs again.
            for below in sorted(p for p in group.rglob("*") if p.is_dir()):
                with contextlib.suppress(OSError):  # just removed
                    _write(below, lift_steps(1))
        _write(group, limit_steps(self.version, cpu))

    def lift(self, node: str) -> None:
        """Take the limit away."""
        _write(self.node(node), lift_steps(self.version))

    def limit(self, node: str) -> float | None:
        """The limit in force, in cores, as the kernel has it; None if there is none."""
        group = self.node(node)
        if self.version == 2:
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = ((group / f"cpu.cfs_{what}_us").read_text().strip() for what in ("quota", "period"))
        return None if quota in ("max", "-1") else int(quota) / int(period)


def quota_us(cpu: float) -> tuple[int, int]:
    """Cores as quota and period."""
    period_us = PERIOD_US if cpu * PERIOD_US >= _SLICE_US else LONG_PERIOD_US
    return round(cpu * period_us), period_us


def limit_steps(version: Literal[1, 2], cpu: float) -> tuple[tuple[str, str], ...]:
    """(file, content) in the order of writing, to limit a group to so many cores."""
    quota, period = quota_us(cpu)
    require(quota >= LEAST_QUOTA_US, f"a node cannot have {cpu:g} cores: the least is {LEAST_QUOTA_US / period:g}")
    if version == 2:
        return (("cpu.max", f"{quota} {period}"),)
    # v1 takes two writes, and between them old and new mix: a new period with the old quota may be less than a child
    # group has, and is refused. Without a quota any period is accepted.
    return (
        ("cpu.cfs_quota_us", "-1"),
        ("cpu.cfs_period_us", str(period)),
        ("cpu.cfs_quota_us", str(quota)),
    )


def weight_steps(version: Literal[1, 2]) -> tuple[tuple[str, str], ...]:
    """The highest weight. A group competes for the CPU as if it were one process: with the usual weight a whole
    cluster would get as much as a single busy process beside it. The fence limits what a node may use."""
    return (("cpu.weight", "10000"),) if version == 2 else (("cpu.shares", "262144"),)


def lift_steps(version: Literal[1, 2]) -> tuple[tuple[str, str], ...]:
    return (("cpu.max", "max"),) if version == 2 else (("cpu.cfs_quota_us", "-1"),)


def trees(mounts: str, own: str) -> tuple[Tree, ...]:
    """Where groups could be made, best first, from the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    found_v1: list[Tree] = []
    found_v2: list[Tree] = []
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        root, point = Path(_unescaped(fields[3])), Path(_unescaped(fields[4]))
        if kind[0] == "cgroup" and "cpu" in kind[2].split(","):
            inside = _inside(_own_path(own, "cpu"), root)
            found_v1 += [Tree(1, point / inside), Tree(1, point)]
        elif kind[0] == "cgroup2":
            # A v2 group with processes of its own cannot hand a controller down, so the nearest ancestors of our own
            # group are the least likely to work; systemd delegates a whole user's tree, which is higher up.
            inside = _inside(_own_path(own, ""), root)
            found_v2 += [Tree(2, point / p) for p in reversed([inside, *inside.parents])]
    return tuple(dict.fromkeys([*found_v1, *found_v2]))


def make_groups(run_id: str, nodes: Iterable[str]) -> RunGroups | str:
    """Make groups for a run and each of its nodes. Returns them, or one sentence that says why there are none."""
    try:
        found = trees(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    except OSError:
        found = ()
    reason = "this machine has no cpu control groups"
    for tree in found:
        groups = RunGroups(tree.version, tree.path / ROOM / run_id)
        try:
            _make(tree, groups, list(nodes))
            return groups
        except OSError as error:
            reason = f"{error.filename or tree.path}: {error.strerror or error}"
            remove_groups(groups, 1.0)
    return reason


def remove_groups(groups: RunGroups, timeout_s: float = 10.0) -> None:
    """Remove a run's groups. Their processes must have ended; the kernel needs a moment after that."""
    if groups.path.parent.name != ROOM:
        raise ValueError(f"{groups.path} is not a group of Barograph")
    _remove(groups.path, time.monotonic() + timeout_s)


def _remove(path: Path, deadline: float) -> None:
    while path.is_dir():
        try:
            below = sorted((p for p in path.rglob("*") if p.is_dir()), reverse=True)
            for group in [*below, path]:
                group.rmdir()
        except FileNotFoundError:
            continue  # another process cleans up too
        except OSError as error:
            if time.monotonic() > deadline:
                log.warning("the control groups %s could not be removed: %s; they are left behind", path, error)
                return
            time.sleep(0.02)
    with contextlib.suppress(OSError):  # another run's groups are still in it
        path.parent.rmdir()


def _make(tree: Tree, groups: RunGroups, nodes: list[str]) -> None:
    for attempt in range(3):
        try:
            groups.path.parent.mkdir(exist_ok=True)
            groups.path.mkdir()
            break
        except FileNotFoundError:  # another cluster removed the empty parent group between the two calls
            if attempt == 2:
                raise
    if groups.version == 2:
        for group in (tree.path, groups.path.parent, groups.path):
            control = group / "cgroup.subtree_control"
            if "cpu" not in control.read_text().split():
                control.write_text("+cpu")
    for group in (groups.path.parent, groups.path):
        _write(group, weight_steps(groups.version))
    for name in nodes:
        groups.node(name).mkdir()
        _write(groups.node(name), lift_steps(groups.version))
    if nodes:
        _try_to_enter(groups.node(nodes[0]))


def _try_to_enter(group: Path) -> None:
    """Making a group may be allowed and entering it not, because that needs rights on the process's own group too."""
    entered = subprocess.run(["sh", "-c", ENTER, "sh", group, "true"], capture_output=True, check=False)
    if entered.returncode != 0:
        raise PermissionError(1, "processes may not be moved into it", str(group))


# "0" means the writing process itself; the shell then becomes the program.
ENTER = 'echo 0 > "$1/cgroup.procs" || exit 1; shift; exec "$@"'


def _write(group: Path, steps: Iterable[tuple[str, str]]) -> None:
    for file, text in steps:
        (group / file).write_text(text)


def _own_path(own: str, controller: str) -> Path:
    for line in own.splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if (controller and controller in names.split(",")) or (not controller and number == "0" and not names):
            return Path(path)
    return Path("/")


def _inside(own: Path, root: Path) -> Path:
    """Our own group as seen below a mount that shows the hierarchy from root on."""
    return own.relative_to(root) if own.is_relative_to(root) else Path()


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
