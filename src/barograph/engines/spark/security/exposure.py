"""What is open to whom: the ports of this user's processes, Barograph's files and those of drivers, control groups.

Reads only. It connects to no port, because one that is not guarded could take any word for a reason to fail; drivers
are asked by their sockets, which only this user can open.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from barograph.engines.spark.cluster.runs import Run, live_runs
from barograph.engines.spark.folders import cache_folder, state_folder
from barograph.engines.spark.health import Finding
from barograph.engines.spark.security.driver_uses import DriverUses, asked_drivers
from barograph.engines.spark.security.folder_rights import folder_finding, place_finding
from barograph.engines.spark.security.port_findings import port_findings
from barograph.engines.spark.security.processes import own_processes
from barograph.engines.spark.security.secret import read_secret
from barograph.model import BadInput


def exposed() -> tuple[Finding, ...]:
    """For each process and its ports, for each folder, and for the control groups of each cluster."""
    try:
        runs, drivers = live_runs(), asked_drivers()
    except BadInput:
        runs, drivers = (), ()  # there is no folder for runs, which is a finding of its own
    masters = frozenset(run.master for run in runs if read_secret(run.folder))
    told = {driver.pid: driver for driver in drivers}
    ports = tuple(
        f
        for process in own_processes()
        for f in port_findings(process, masters, next((d for d in drivers if process.pid in (d.pid, d.jvm)), None))
    )
    own = _own_folders()
    folders = (folder_finding(f"files of {name}", folder) for name, folder in own.items())
    return (*ports, *folders, *_used(told, own), *(f for run in runs for f in _group_findings(run)))


def _own_folders() -> dict[str, Path]:
    found = {}
    for name, find in (("state", state_folder), ("cache", cache_folder)):
        with contextlib.suppress(BadInput):  # a finding of its own
            found[name] = find()
    return found


def _used(drivers: Mapping[int, DriverUses], own: Mapping[str, Path]) -> Iterator[Finding]:
    """Checkpoints and histories, but for those in folders that are looked at anyway."""
    for pid, driver in drivers.items():
        for what, places in (("checkpoint", driver.checkpoints), ("history", driver.histories)):
            for place in places:
                if not any(Path(place.removeprefix("file:")).is_relative_to(folder) for folder in own.values()):
                    yield place_finding(f"{what} of driver {pid}", place)


def _group_findings(run: Run) -> Iterator[Finding]:
    if run.groups is not None:
        seen = run.groups.path.stat()
        ok = seen.st_uid == os.getuid() and not seen.st_mode & 0o022
        found = f"{run.groups.path}: " + ("only its owner can change limits" if ok else "OTHER users can change limits")
        yield Finding(f"control groups of {run.name}", ok, found, f"chmod go-w {run.groups.path}")
