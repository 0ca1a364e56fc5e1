"""The ports on which processes listen, as the kernel lists them. Reads /proc only; connects to nothing."""

import contextlib
import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_LISTEN = "0A"
_USUAL_RANGE = (32768, 60999)  # of ports that the kernel chooses


@dataclass(frozen=True, slots=True, order=True)
class ListeningPort:
    """address: as bound; ``0.0.0.0`` or ``::`` is every interface."""

    pid: int
    address: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only programs of this machine can connect."""
        return ipaddress.ip_address(self.address).is_loopback


def listening(pids: Iterable[int]) -> tuple[ListeningPort, ...]:
    """Every TCP port on which one of these processes listens. Those of other users cannot be read, and are left out."""
    tables: dict[str, dict[str, tuple[str, int]]] = {}
    found = set()
    for pid in pids:
        space = _namespace(pid)
        bound = tables[space] = tables.get(space) or _bound(pid)
        for inode in _sockets(pid):
            if inode in bound:
                found.add(ListeningPort(pid, *bound[inode]))
    return tuple(sorted(found))


def chosen_by_system(port: int) -> bool:
    """Whether the kernel may have chosen it, for a program that asked for any port."""
    first, last = _USUAL_RANGE
    with contextlib.suppress(OSError):
        first, last = map(int, (_PROC / "sys" / "net" / "ipv4" / "ip_local_port_range").read_text().split())
    return first <= port <= last


def _namespace(pid: int) -> str:
    """Of its network, as a container has its own. Where that cannot be read, one for this process alone."""
    try:
        return str((_PROC / str(pid) / "ns" / "net").readlink())
    except OSError:
        return str(pid)


def _bound(pid: int) -> dict[str, tuple[str, int]]:
    """The socket's inode -> the address and port on which it listens, in the network of this process."""
    found = {}
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):  # it has ended, or a machine without IPv6
            for line in (_PROC / str(pid) / "net" / name).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN:
                    address, port = fields[1].split(":")
                    found[fields[9]] = (address_in(address), int(port, 16))
    return found


def address_in(text: str) -> str:
    """An address as the kernel writes it: words of four bytes, each with its lowest byte first."""
    raw = bytes.fromhex(text)
    ordered = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
    found = ipaddress.ip_address(ordered)
    return str(getattr(found, "ipv4_mapped", None) or found)


def _sockets(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):  # it has ended, or belongs to another user
        for entry in os.scandir(_PROC / str(pid) / "fd"):
            with contextlib.suppress(OSError):
                target = str(Path(entry.path).readlink())
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return found
