"""Several hosts, each connected to one bridge. The bridge is in a namespace of its own, so that the machine's own
network is not touched; addresses exist only inside. Links between two hosts can be cut and healed."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from barograph.engines.spark.cluster.processes import marked
from barograph.guardian import Guarded, guarded
from barograph.testing.hosts.host import ROOM, Host, Sight

_NET = "10.77.0"
_NOWHERE = "02:00:00:00:00:01"  # an address that no host has: what is sent there is lost without a word


@dataclass
class Hosts:
    """by_name: in the order in which they were asked for. shared: the folder that all hosts see as SHARED."""

    home: Guarded
    by_name: dict[str, Host]
    bridge: Host

    def add(self, name: str, sight: Sight) -> Host:
        """A further host. It knows the others by their names; they know it by its address only."""
        host = Host(name, f"{_NET}.{len(self.by_name) + 1}", self.home)
        self.by_name[name] = host
        _connect(self.bridge, host)
        host.prepare(sight, {n: h.address for n, h in self.by_name.items()})
        return host

    def cut(self, one: str, other: str) -> None:
        """From now on nothing that one of them sends reaches the other, and neither is told."""
        for here, there in ((one, other), (other, one)):
            address = self.by_name[there].address
            # The neighbour's link address is replaced: packets are sent, and no one takes them.
            self.by_name[here].run(
                ["ip", "neigh", "replace", address, "lladdr", _NOWHERE, "dev", "eth0", "nud", "permanent"]
            )

    def heal(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            self.by_name[here].run(["ip", "neigh", "del", self.by_name[there].address, "dev", "eth0"])

    def processes(self) -> int:
        """How many there are on all hosts."""
        return len(marked(self.home.folder.name))


def why_no_hosts() -> str | None:
    """Why hosts cannot be made here, for people to read; None if they can."""
    if os.geteuid() != 0:
        return "hosts in namespaces need root"
    missing = [name for name in ("ip", "unshare", "nsenter", "mount") if shutil.which(name) is None]
    if missing:
        return f"hosts in namespaces need {', '.join(missing)}: install iproute2 and util-linux"
    if not ROOM.is_dir():
        return f"hosts in namespaces need the folder {ROOM}"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "ip", "link", "add", "tried", "type", "bridge"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return None if tried.returncode == 0 else f"this machine allows no namespaces: {tried.stderr.strip()}"


@contextmanager
def open_hosts(sights: Mapping[str, Sight]) -> Iterator[Hosts]:
    """Hosts by these names that can reach each other; they end with the block, or with this process."""
    with guarded("hosts") as home:
        (home.folder / "shared").mkdir()
        bridge = Host("bridge", "", home)
        made = {name: Host(name, f"{_NET}.{k}", home) for k, name in enumerate(sights, 1)}
        _ip(bridge, ["link", "add", "bridge", "type", "bridge"], ["link", "set", "bridge", "up"])
        names = {name: host.address for name, host in made.items()}
        for name, host in made.items():
            _connect(bridge, host)
            host.prepare(sights[name], names)
        try:
            yield Hosts(home, made, bridge)
        finally:
            for host in (*made.values(), bridge):
                host.lose()


def _connect(bridge: Host, host: Host) -> None:
    port = f"to-{host.address.rpartition('.')[2]}"
    # Made in the bridge's namespace, with the machine's process ids, by which the other end is named.
    subprocess.run(
        ["nsenter", "-t", str(bridge.holder.pid), "-n", "ip", "link", "add", port, "type", "veth", "peer", "name",
         "eth0", "netns", str(host.holder.pid)],
        check=True,
    )  # fmt: skip
    _ip(bridge, ["link", "set", port, "master", "bridge", "up"])
    _ip(
        host,
        ["link", "set", "lo", "up"],
        ["addr", "add", f"{host.address}/24", "dev", "eth0"],
        ["link", "set", "eth0", "up"],
    )


def _ip(host: Host, *commands: Sequence[str]) -> None:
    for command in commands:
        host.run(["ip", *command])
