"""The folder for the logs of one command: what Spark writes, and the controller's log. The newest folders are kept."""

import contextlib
import logging
import os
import shutil
import time
from pathlib import Path

from barograph.engines.spark.cluster.start_signs import tail
from barograph.engines.spark.folders import state_folder
from barograph.engines.spark.tolerated import tolerated

log = logging.getLogger(__name__)

SPARK, CONTROLLER = "spark.log", "controller.log"
KEPT = 20


def new_log_folder(command: str) -> Path:
    """An empty folder below the state folder. Older ones are removed, so that only so many are ever there."""
    every = state_folder() / "logs"
    every.mkdir(mode=0o700, exist_ok=True)
    oldest_first = sorted((p for p in every.iterdir() if p.is_dir()), key=lambda p: (p.stat().st_mtime_ns, p.name))
    for old in oldest_first[: max(0, len(oldest_first) - KEPT + 1)]:
        with tolerated(log, f"the logs in {old} stay", OSError), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(old)  # another command may remove it too
    folder = every / f"{command}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def end_of(folder: Path) -> str:
    """The last lines that Spark wrote, with the name of their file; empty if it wrote nothing."""
    log = folder / SPARK
    return f"the end of {log}:\n{tail(log)}\n" if log.exists() and log.stat().st_size else ""
