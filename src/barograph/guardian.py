"""Ends what a process has started and removes its folder when that process has ended, also by a crash.

Each use has a folder whose name says which process owns it. The name is also the mark in the environment of every
process that belongs to it, by which all of them are found. A guardian process (``python -m ... FOLDER``) waits for the
owner's end; should both be killed, the next use on this machine clears what they left. It decides nothing else.
"""

import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from barograph.engines.spark.cluster.processes import (
    RUN_MARK,
    Process,
    alive,
    identify,
    kill_marked,
    python_environment,
    wait_gone,
)
from barograph.engines.spark.folders import state_folder
from barograph.model import BadInput

_NAME = re.compile(r"[a-z]+-(\d+)-(\d+)-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Guarded:
    """folder: removed at the end. mark: for the environment of every process that is to end with it."""

    folder: Path

    @property
    def mark(self) -> dict[str, str]:
        return {RUN_MARK: self.folder.name}


@contextmanager
def guarded(what: str) -> Iterator[Guarded]:
    """A folder and a mark for the processes of this block; they end with the block, or with this process."""
    base = _base()
    sweep(base)
    me = identify(os.getpid())
    if me is None:
        raise BadInput(f"{what} needs Linux: /proc does not show this process")
    folder = base / f"{what}-{me.pid}-{me.start_ticks}-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    guardian = subprocess.Popen(
        [sys.executable, "-m", "barograph.guardian", str(folder)], env=python_environment(), stdin=subprocess.DEVNULL,
        cwd="/", start_new_session=True,
    )  # fmt: skip
    try:
        yield Guarded(folder)
    finally:
        clear(folder)
        guardian.kill()
        guardian.wait()


def sweep(base: Path) -> tuple[str, ...]:
    """Clear what is left of owners that have ended. Returns the names of what was cleared."""
    left = [f for f in sorted(base.iterdir()) if (owner := owner_of(f)) is not None and not alive(owner)]
    for folder in left:
        clear(folder)
    return tuple(folder.name for folder in left)


def clear(folder: Path) -> None:
    kill_marked(folder.name)
    shutil.rmtree(folder, ignore_errors=True)


def owner_of(folder: Path) -> Process | None:
    """By the folder's name; None where that is not one of ours."""
    found = _NAME.fullmatch(folder.name)
    return None if found is None else Process(int(found[1]), int(found[2]))


def _base() -> Path:
    base = state_folder() / "guarded"
    base.mkdir(mode=0o700, exist_ok=True)
    return base


def main(folder: Path) -> None:
    owner = owner_of(folder)
    if owner is None:
        raise BadInput(f"{folder} names no process that owns it")
    wait_gone(owner, None)
    clear(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
