"""Records of the embedded clusters of this user: one folder with one ``run.json`` for each.

A record is written before anything starts and says enough to end all of it, so that the watchdog, or the next start
after a crash, can clean up. This module decides what is left over: a run whose owner and watchdog are dead.
"""

import json
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from barograph.engines.spark.cluster.node_limit import RunGroups, remove_groups
from barograph.engines.spark.cluster.processes import Process, alive, boot_id, identify, kill, kill_marked, wait_gone
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.folders import state_folder
from barograph.engines.spark.tolerated import tolerated
from barograph.logs import OnceOnly
from barograph.model import BadInput
from barograph.model.checks import require, require_name

log = logging.getLogger(__name__)
_warnings = OnceOnly(log)

_UNWRITTEN_S = 60.0  # a folder that still has no record after this time is left over


@dataclass(frozen=True, slots=True)
class Run:
    """An embedded cluster as recorded. run_id is unique for all time; the name may be used again.

    leaders: the process of the master and of each node's worker, by name. master and web: URLs, empty until known.
    """

    name: str
    run_id: str
    boot: str
    owner: Process
    settings: ClusterSettings
    detached: bool = False
    watchdog: Process | None = None
    leaders: Mapping[str, Process] = field(default_factory=dict)
    groups: RunGroups | None = None
    unfenced_because: str = ""
    master: str = ""
    web: str = ""

    @property
    def folder(self) -> Path:
        return _runs_folder() / self.name

    @property
    def owned(self) -> bool:
        """Whether the process that started it is alive."""
        return self.boot == boot_id() and alive(self.owner)

    @property
    def guarded(self) -> bool:
        return self.boot == boot_id() and self.watchdog is not None and alive(self.watchdog)


def claim(settings: ClusterSettings, name: str | None, detached: bool = False) -> Run:
    """Record a new run of this process. Raises BadInput if the name is taken."""
    token = secrets.token_hex(4)
    chosen = f"run-{token}" if name is None else name
    require_name("name", chosen)
    require(not chosen.startswith(".") and len(chosen) <= 60, f"name {chosen!r} must be short and not begin with a dot")
    me = identify(os.getpid())
    if me is None:
        raise BadInput("an embedded cluster needs Linux: /proc does not show this process")
    run = Run(chosen, f"{chosen}-{token}", boot_id(), me, settings, detached)
    try:
        run.folder.mkdir(mode=0o700)
    except FileExistsError:
        raise BadInput(f"a cluster named {chosen} is up already: barograph cluster down {chosen}") from None
    record(run)
    return run


def record(run: Run) -> None:
    """Write the record, atomically."""
    handle, name = tempfile.mkstemp(dir=run.folder, prefix=".run-")
    with os.fdopen(handle, "w") as file:
        json.dump(asdict(run), file, indent=1, default=str)
    Path(name).replace(run.folder / "run.json")


def all_runs() -> tuple[Run, ...]:
    """Every recorded run, alive or left over."""
    found = (read(folder) for folder in sorted(_runs_folder().iterdir()))
    return tuple(run for run in found if run is not None)


def live_runs() -> tuple[Run, ...]:
    return tuple(run for run in all_runs() if run.owned)


def run_of(master: str) -> Run | None:
    """The embedded cluster with this master URL; None if it is not one of this user on this machine."""
    return next((run for run in live_runs() if run.master == master), None)


def clear(run: Run) -> None:
    """End all processes of a run, except the caller, and remove its control groups and files."""
    if run.boot == boot_id():
        kill(p for p in run.leaders.values() if p.pid != os.getpid())
        kill_marked(run.run_id)
        if run.groups is not None:
            remove_groups(run.groups)
    _remove_folder(run.folder)


def sweep(patience_s: float = 10.0) -> tuple[str, ...]:
    """Clear what crashes left behind. Returns the names of the runs that were cleared here.

    A run with a live watchdog is left to the watchdog; this waits a moment for it, so that the name is free again.
    """
    cleared = []
    for folder in sorted(_runs_folder().iterdir()):
        run = read(folder)
        if run is None:
            if _age_s(folder) > _UNWRITTEN_S:
                _remove_folder(folder)
        elif not run.owned:
            if run.guarded and run.watchdog is not None and not wait_gone(run.watchdog, patience_s):
                continue
            if read(folder) == run:
                clear(run)
                cleared.append(run.name)
    return tuple(cleared)


def read(folder: Path) -> Run | None:
    """The run recorded in a folder; None if there is no readable record."""
    try:
        raw = json.loads((folder / "run.json").read_text())
        groups, watchdog = raw.pop("groups"), raw.pop("watchdog")
        return Run(
            owner=Process(**raw.pop("owner")),
            settings=ClusterSettings(**raw.pop("settings")),
            watchdog=None if watchdog is None else Process(**watchdog),
            leaders={name: Process(**p) for name, p in raw.pop("leaders").items()},
            groups=None if groups is None else RunGroups(groups["version"], Path(groups["path"])),
            **raw,
        )
    except OSError:
        return None  # not written yet, or removed meanwhile
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"
        _warnings.warn(str(folder), f"the record of the cluster in {folder} makes no sense: {problem}; it is left out")
        return None


def _runs_folder() -> Path:
    folder = state_folder() / "runs"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _age_s(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:
        return 0.0


def _remove_folder(folder: Path) -> None:
    # Renamed first: the name is free at once, and no process reads a half-removed run.
    gone = folder.with_name(f".gone-{secrets.token_hex(4)}")
    try:
        folder.rename(gone)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("%s could not be removed: %s; the next start of a cluster tries again", folder, error)
        return
    with tolerated(log, f"{gone}, what is left of an ended cluster, stays", OSError):
        shutil.rmtree(gone)
