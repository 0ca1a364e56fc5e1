"""What is running on this machine: one folder with one ``run.json`` for each embedded cluster of this user.

It is written before anything starts and says enough to end all of it, so that whoever comes later (the watchdog, or the
next start after a crash) can clear up. It decides what is left over: a run whose owner and whose watchdog are dead.
"""

import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from barograph.engines.spark.fence import Groups, remove_groups
from barograph.engines.spark.folders import state_folder
from barograph.engines.spark.processes import Process, alive, boot_id, identify, kill, kill_marked, wait_gone
from barograph.engines.spark.settings import ClusterSettings
from barograph.model import BadInput
from barograph.model.checks import require, require_name

_UNWRITTEN_S = 60.0  # a folder without a record is left over after this time: records are written at once


@dataclass(frozen=True, slots=True)
class Run:
    """An embedded cluster as recorded. run_id is unique for all time; the name may be used again.

    leaders: the master and the worker process of each node, by name. master and web: URLs, empty until they are known.
    """

    name: str
    run_id: str
    boot: str
    owner: Process
    settings: ClusterSettings
    detached: bool = False
    watchdog: Process | None = None
    leaders: Mapping[str, Process] = field(default_factory=dict)
    groups: Groups | None = None
    unfenced_because: str = ""
    master: str = ""
    web: str = ""

    @property
    def folder(self) -> Path:
        return _runs_folder() / self.name

    @property
    def owned(self) -> bool:
        """Whether the process that started it lives."""
        return self.boot == boot_id() and alive(self.owner)

    @property
    def guarded(self) -> bool:
        return self.boot == boot_id() and self.watchdog is not None and alive(self.watchdog)


def claim(settings: ClusterSettings, name: str | None, detached: bool = False) -> Run:
    """Record a new run of this process. BadInput when the name is taken."""
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
    """Write the run down, whole or not at all."""
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
    """The embedded cluster behind a master URL; None when it is not one of this user's on this machine."""
    return next((run for run in live_runs() if run.master == master), None)


def nodes_of(master: str) -> dict[str, str]:
    """Address -> node name, for who has only the master URL; empty when it is no embedded cluster of this user."""
    run = run_of(master)
    return {} if run is None else {address: name for name, address in run.settings.addresses().items()}


def clear(run: Run) -> None:
    """End everything of a run and remove every trace of it, except the process that calls."""
    if run.boot == boot_id():
        kill(p for p in run.leaders.values() if p.pid != os.getpid())
        kill_marked(run.run_id)
        if run.groups is not None:
            remove_groups(run.groups)
    _remove_folder(run.folder)


def sweep(patience_s: float = 10.0) -> tuple[str, ...]:
    """Clear what crashes left behind; the names of what was cleared here.

    A run whose watchdog lives is the watchdog's, which is given a moment to finish so that the name is free again.
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
    """The run recorded in a folder; None when there is no record that can be read."""
    try:
        raw = json.loads((folder / "run.json").read_text())
        groups, watchdog = raw.pop("groups"), raw.pop("watchdog")
        return Run(
            owner=Process(**raw.pop("owner")),
            settings=ClusterSettings(**raw.pop("settings")),
            watchdog=None if watchdog is None else Process(**watchdog),
            leaders={name: Process(**p) for name, p in raw.pop("leaders").items()},
            groups=None if groups is None else Groups(groups["version"], Path(groups["path"])),
            **raw,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
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
    # Out of the way in one step first: the name is free at once and nobody reads a half-removed run.
    gone = folder.with_name(f".gone-{secrets.token_hex(4)}")
    try:
        folder.rename(gone)
    except OSError:
        return
    shutil.rmtree(gone, ignore_errors=True)
