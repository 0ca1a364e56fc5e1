"""The ports on which processes listen, as the kernel lists them. Reads /proc only; connects to nothing."""

import contextlib
import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_LISTEN = "0A"


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
    bound = _bound()
    found = set()
    for pid in pids:
        for inode in _sockets(pid):
            if inode in bound:
                found.add(ListeningPort(pid, *bound[inode]))
    return tuple(sorted(found))


def _bound() -> dict[str, tuple[str, int]]:
    """The socket's inode -> the address and port on which it listens."""
    found = {}
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):  # a machine without IPv6
            for line in (_PROC / "net" / name).read_text().splitlines()[1:]:
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
