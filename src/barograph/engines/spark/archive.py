"""The daemons' class archive: what Java has loaded and checked once need not be loaded and checked in every start.

More than half of a daemon's start is loading classes. An archive of them (Java's class data sharing) is made once per
Java and Spark by ``make_archive`` and used by every later start. Java starts without one that does not fit.
"""

import hashlib
import os
from pathlib import Path

from barograph.engines.spark.folders import cache_folder
from barograph.engines.spark.java import Java, spark_jars

_QUIET = "-Xlog:disable"  # Java's own remarks on archives would be the first lines of every log


def archive_of(java: Java) -> Path:
    """Where the archive for this Java and this Spark is, or would be."""
    command = java.runtime / "bin" / "java"
    files = (command, *spark_jars())
    # Java refuses an archive of jars with other times, so they are part of its name.
    known = "\n".join(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
    return cache_folder() / f"daemons-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def use_archive(java: Java) -> tuple[str, ...]:
    """Java's options to start from the archive; none while there is no archive."""
    archive = archive_of(java)
    return (f"-XX:SharedArchiveFile={archive}", _QUIET) if archive.is_file() else ()


def write_archive(java: Java) -> tuple[tuple[str, ...], Path]:
    """Java's options to write an archive when it ends in order, and where. It counts once ``keep`` has named it."""
    unfinished = archive_of(java).with_suffix(f".{os.getpid()}")
    return (f"-XX:ArchiveClassesAtExit={unfinished}", _QUIET), unfinished


def keep(java: Java, unfinished: Path) -> bool:
    """Put a written archive in its place; False when none was written."""
    try:
        unfinished.replace(archive_of(java))
        return True
    except FileNotFoundError:
        return False
