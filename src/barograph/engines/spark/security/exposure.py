"""What is open to whom: the ports of this user's Spark processes, Barograph's files, and its control groups.

Reads only: it connects to nothing, because a port that is not guarded could take any word for a reason to fail.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from barograph.engines.spark.cluster.runs import Run, live_runs
from barograph.engines.spark.folders import cache_folder, state_folder
from barograph.engines.spark.health import Finding
from barograph.engines.spark.security.ports import ListeningPort, listening
from barograph.engines.spark.security.secret import read_secret
from barograph.model import BadInput

_PROC = Path("/proc")
_ROLES = {
    "org.apache.spark.deploy.master.Master": "master",
    "org.apache.spark.deploy.worker.Worker": "worker",
    "org.apache.spark.executor.CoarseGrainedExecutorBackend": "executor",
    "org.apache.spark.deploy.SparkSubmit": "driver",
}
_PLUGIN = "barograph-plugin"
_SHOWN = 5  # of a list that can be long


@dataclass(frozen=True, slots=True)
class SparkProcess:
    """A Spark process of this user, and what it listens on. words: its command line."""

    pid: int
    role: str
    words: tuple[str, ...]
    ports: tuple[ListeningPort, ...]
    guarded: bool = False
    """Whether it has the plug-in, whose shuffle gives rows only to readers that prove themselves."""

    def authenticated(self, masters: frozenset[str]) -> bool:
        """Whether its RPC asks for a secret. masters: URLs of clusters that do: they let no other driver in."""
        if {"spark.authenticate=true", "-Dspark.authenticate=true"} & set(self.words):
            return True
        if any(word.removeprefix("spark.master=") in masters for word in self.words):
            return True
        if "--properties-file" in self.words[:-1]:
            with contextlib.suppress(OSError):
                file = Path(self.words[self.words.index("--properties-file") + 1])
                return "spark.authenticate true" in file.read_text(encoding="utf-8").splitlines()
        return False


def exposed() -> tuple[Finding, ...]:
    """One finding for each process that listens, for each folder, and for the control groups of each cluster."""
    try:
        runs = live_runs()
    except BadInput:
        runs = ()  # there is no folder for runs, which is a finding of its own
    masters = frozenset(run.master for run in runs if read_secret(run.folder))
    ports = tuple(finding for process in spark_processes() for finding in port_findings(process, masters))
    return (*ports, *_folders(), *(f for run in runs for f in _group_findings(run)))


def spark_processes() -> Iterator[SparkProcess]:
    """Spark's processes that belong to this user and listen on a port."""
    for entry in sorted((p for p in _PROC.iterdir() if p.name.isdecimal()), key=lambda p: int(p.name)):
        with contextlib.suppress(OSError):  # it has ended
            if entry.stat().st_uid != os.getuid():
                continue
            words = tuple(w.decode(errors="replace") for w in (entry / "cmdline").read_bytes().split(b"\0") if w)
            role = next((_ROLES[word] for word in words if word in _ROLES), "")
            ports = listening([int(entry.name)]) if role else ()
            if ports:
                yield SparkProcess(int(entry.name), role, words, ports, _has_plugin(entry, words))


def _has_plugin(entry: Path, words: tuple[str, ...]) -> bool:
    """By its class path, or among its open files where the jar was sent to it."""
    if any(_PLUGIN in word for word in words):
        return True
    for descriptor in (entry / "fd").iterdir():
        with contextlib.suppress(OSError):
            if _PLUGIN in str(descriptor.readlink()):
                return True
    return False


def port_findings(process: SparkProcess, masters: frozenset[str]) -> Iterator[Finding]:
    """Its ports on addresses of its own, and those on every interface, which are the streaming shuffle's."""
    name = f"ports of {process.role} {process.pid}"
    own = [p for p in process.ports if p.address not in ("::", "0.0.0.0")]
    wide = [p for p in process.ports if p not in own]
    secret = process.authenticated(masters)
    if own:
        reach = "this machine" if all(p.loopback for p in own) else "the network"
        how = "with a secret" if secret else "WITHOUT a secret"
        advice = "set spark.authenticate and spark.authenticate.secret, by --properties-file with a file of your own"
        places = ", ".join(f"{p.address}:{p.port}" for p in own)
        yield Finding(name, secret, f"{places}: open to {reach}, {how}", advice)
    if wide:
        shuffle = process.role in ("executor", "driver") and process.guarded
        how = "rows only for readers with a proof" if shuffle else "WITHOUT authentication"
        advice = "load the plug-in (barograph conf), or keep other machines and users away from these ports"
        places = ", ".join(str(p.port) for p in wide[:_SHOWN]) + (" and more" if len(wide) > _SHOWN else "")
        yield Finding(name, shuffle, f"every interface, {len(wide)} ports ({places}): {how}", advice)


def _folders() -> Iterator[Finding]:
    for name, find in (("state", state_folder), ("cache", cache_folder)):
        with contextlib.suppress(BadInput):  # a finding of its own
            yield folder_finding(f"files of {name}", find())


def folder_finding(name: str, folder: Path) -> Finding:
    """Whether other users can read or write anything in it."""
    if not folder.stat().st_mode & 0o077:
        return Finding(name, True, f"{folder}: only its owner can enter")
    found = []
    for place in folder.rglob("*"):
        with contextlib.suppress(OSError):  # it has gone meanwhile
            mode = place.lstat().st_mode
            if mode & 0o077 and not place.is_symlink():
                found.append(str(place.relative_to(folder)))
    listed = ", ".join(sorted(found)[:_SHOWN]) + (" and more" if len(found) > _SHOWN else "")
    text = f"{folder}: other users can enter" + (f" and use {listed}" if found else "")
    return Finding(name, not found, text, f"chmod 700 {folder}")


def _group_findings(run: Run) -> Iterator[Finding]:
    if run.groups is not None:
        seen = run.groups.path.stat()
        ok = seen.st_uid == os.getuid() and not seen.st_mode & 0o022
        found = f"{run.groups.path}: " + ("only its owner can change limits" if ok else "OTHER users can change limits")
        yield Finding(f"control groups of {run.name}", ok, found, f"chmod go-w {run.groups.path}")
