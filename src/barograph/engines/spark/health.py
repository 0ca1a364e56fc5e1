"""Whether this machine can run Barograph: one finding for each thing it needs, with advice if it is missing.

Reads only, except for one control group that it makes and removes.
"""

import importlib.metadata
import os
import secrets
import shutil
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from barograph.engines.spark.cluster.java import find_java, spark_jars
from barograph.engines.spark.cluster.node_limit import RunGroups, make_groups, remove_groups
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.conf import plugin_jar
from barograph.engines.spark.folders import cache_folder, state_folder
from barograph.model import BadInput

LEAST_MEMORY_MB = 4096
LEAST_DISK_MB = 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """ok: as it should be. essential: nothing runs without it. advice: what to do if it is not ok."""

    name: str
    ok: bool
    found: str
    advice: str = ""
    essential: bool = True


def examine() -> tuple[Finding, ...]:
    checks: tuple[Callable[[], Finding], ...] = (
        _python, _system, _java, _spark, _plugin, _control_groups, _cores, _memory, _folders, _addresses, _ports,
    )  # fmt: skip
    return tuple(check() for check in checks)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")


def _system() -> Finding:
    return Finding("system", Path("/proc/self/stat").exists(), sys.platform, "an embedded cluster needs Linux")


def _java() -> Finding:
    try:
        java = find_java()
    except BadInput as error:
        return Finding("java", False, str(error), "pip install 'barograph[java]'")
    return Finding("java", True, f"{java.version} in {java.runtime}")


def _spark() -> Finding:
    advice = "pip install 'pyspark==4.3.*'"
    try:
        version = importlib.metadata.version("pyspark")
        jars = len(spark_jars())
    except (importlib.metadata.PackageNotFoundError, BadInput) as error:
        return Finding("spark", False, str(error), advice)
    return Finding("spark", version.startswith("4.3."), f"{version} with {jars} jars", advice)


def _plugin() -> Finding:
    try:
        jar = plugin_jar()
    except BadInput:
        return Finding("plug-in", False, "not built", "run make, or install the barograph wheel, which carries it")
    return Finding("plug-in", True, f"{jar.name}, {jar.stat().st_size // 1024} KB")


def _control_groups() -> Finding:
    """Tries to write the fence of a node."""
    groups = make_groups(f"doctor-{os.getpid()}-{secrets.token_hex(2)}", ["node-1"])
    if not isinstance(groups, RunGroups):
        advice = (
            "run as root, or have a cgroup with the cpu controller delegated to you; without it nodes have no limit"
        )
        return Finding("control groups", False, groups, advice, essential=False)
    try:
        groups.fence("node-1", 0.5)
        return Finding("control groups", True, f"version {groups.version}, nodes can be fenced")
    except OSError as error:
        return Finding(
            "control groups", False, f"version {groups.version}: {error}", "without it nodes have no limit", False
        )
    finally:
        remove_groups(groups)


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0))
    return Finding("cores", cores >= 2, f"{cores}", "figures are useful only with at least two cores", False)


def _memory() -> Finding:
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines() if ":" in line)
    free_mb = int(fields["MemAvailable"].split()[0]) // 1024
    need_mb = LEAST_MEMORY_MB
    return Finding(
        "memory", free_mb >= need_mb, f"{free_mb:,} MB available",
        f"three nodes take about {need_mb:,} MB: use fewer --nodes or less --memory", essential=False,
    )  # fmt: skip


def _folders() -> Finding:
    try:
        state, cache = state_folder(), cache_folder()
    except BadInput as error:
        return Finding("folders", False, str(error), "set BAROGRAPH_STATE and BAROGRAPH_CACHE to folders of your own")
    free_mb = shutil.disk_usage(state).free >> 20
    found = f"{state} ({free_mb:,} MB free), {cache}"
    return Finding("folders", free_mb >= LEAST_DISK_MB, found, f"{state} needs {LEAST_DISK_MB:,} MB free")


def _addresses() -> Finding:
    """Each node has a loopback address of its own."""
    last = list(ClusterSettings().addresses().values())[-1]
    return _bindable("addresses", last, f"loopback up to {last}", "give the loopback device the whole of 127.0.0.0/8")


def _ports() -> Finding:
    return _bindable("ports", "127.0.0.1", "free ports can be opened", "no local port can be opened: see ulimit -n")


def _bindable(name: str, address: str, found: str, advice: str) -> Finding:
    try:
        with socket.create_server((address, 0)):
            return Finding(name, True, found)
    except OSError as error:
        return Finding(name, False, f"{address}: {error.strerror}", advice)
