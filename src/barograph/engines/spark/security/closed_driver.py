"""Closes a driver to other users of its machine and to the network. Pure: it only names and compares settings of Spark.

Spark's own defaults leave it open: its ports are on the machine's own address and ask for nothing, and its web pages
are on every interface, show what runs and can end it. On a local master what a program sets itself is kept, and what
that leaves open is said. On an embedded cluster, which is for its owner only, nothing that would open the driver is
taken.
"""

import ipaddress
from collections.abc import Mapping

_HERE = "127.0.0.1"
HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"
AUTHENTICATE = "spark.authenticate"
PAGES = "spark.ui.enabled"
_KEYS = (AUTHENTICATE, "spark.network.crypto.")

# Not for a driver whose executors are on other machines.
HERE = {HOST: _HERE, BIND: _HERE}
NO_PAGES = {PAGES: "false"}
# Hadoop gives checkpoint files these rights, whatever the masks of processes are.
OWNERS_FILES = {"spark.hadoop.fs.permissions.umask-mode": "077"}
CLOSED = {**HERE, **NO_PAGES, **OWNERS_FILES}
# Where the driver is the only executor, Spark makes the secret itself and keeps it in the driver's memory.
CLOSED_LOCAL = {AUTHENTICATE: "true", **HERE, **NO_PAGES}

# Setting -> what another value than ours opens.
_OPENS = {
    AUTHENTICATE: "whatever reaches the driver's ports can use them",
    **dict.fromkeys(HERE, "the driver's ports are open to the network"),
    PAGES: "the driver's web pages are open to every user of this machine and to the network",
    **dict.fromkeys(OWNERS_FILES, "other users can read checkpoint files"),
}


def is_key(setting: str) -> bool:
    """Whether it says how processes of a cluster know each other."""
    return setting.startswith(_KEYS)


def closing_local(theirs: Mapping[str, str]) -> dict[str, str]:
    """What closes the driver of a local master. Its two addresses belong together: a program that sets one of them
    keeps the other as Spark has it."""
    kept = {*theirs, *(HERE if theirs.keys() & HERE.keys() else ())}
    return {key: value for key, value in CLOSED_LOCAL.items() if key not in kept}


def left_open(theirs: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    """One sentence for each setting of ours that the program has otherwise, so that something is open."""
    bound = BIND if BIND in theirs else HOST  # without one of its own, the driver listens on the other
    said = []
    for key in (key for key in _OPENS if key in ours and key in theirs):
        if key in HERE:
            is_open = key == bound and not _is_loopback(theirs[key])
        else:
            is_open = theirs[key].strip().lower() != ours[key]
        if is_open:
            said.append(f"{key} is {theirs[key]!r}, not {ours[key]}: {_OPENS[key]}; leave that setting out")
    return said


def not_up_to_them(of_cluster: Mapping[str, str]) -> dict[str, str]:
    """Those settings of an embedded cluster that hold whatever the program sets."""
    return {key: value for key, value in of_cluster.items() if key in HERE or key in NO_PAGES or is_key(key)}


def not_taken(theirs: Mapping[str, str], held: Mapping[str, str]) -> list[str]:
    """One sentence for each setting of the program in whose place ours holds, without values: one is the secret."""
    return [
        f"{key} of the program is not taken, because the cluster is for its owner only: leave that setting out"
        for key, value in held.items()
        if theirs.get(key, value).strip() != value
    ]


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.strip().strip("[]")).is_loopback
    except ValueError:
        return address.strip() == "localhost"
