"""The class archive of the daemons (Java's class data sharing), which makes their start faster.

More than half of a daemon's start is loading classes. ``make_archive`` makes an archive of them once per Java and
Spark, and every later start uses it. If the archive does not fit, Java starts without it.
"""

import hashlib
import os
from pathlib import Path

from barograph.engines.spark.cluster.java import Java, spark_jars
from barograph.engines.spark.folders import cache_folder

_QUIET = "-Xlog:disable"  # else Java's remarks on archives would be the first lines of every log


def archive_of(java: Java) -> Path:
    """Where the archive for this Java and this Spark is, or would be."""
    command = java.runtime / "bin" / "java"
    files = (command, *spark_jars())
    # Java refuses an archive if the jars' times differ, so the times are part of its name.
    known = "\n".join(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
    return cache_folder() / f"daemons-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def use_archive(java: Java) -> tuple[str, ...]:
    """Java's options to start from the archive; empty if there is no archive."""
    archive = archive_of(java)
    return (f"-XX:SharedArchiveFile={archive}", _QUIET) if archive.is_file() else ()


def write_archive(java: Java) -> tuple[tuple[str, ...], Path]:
    """Java's options to write an archive when it ends in order, and its path. ``keep`` then moves it into place."""
    unfinished = archive_of(java).with_suffix(f".{os.getpid()}")
    return (f"-XX:ArchiveClassesAtExit={unfinished}", _QUIET), unfinished


def keep(java: Java, unfinished: Path) -> bool:
    """Move a written archive into place; False if none was written."""
    try:
        unfinished.replace(archive_of(java))
        return True
    except FileNotFoundError:
        return False
