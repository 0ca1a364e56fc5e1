"""Which ports processes listen on."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from barograph.engines.spark.security import ports
from barograph.engines.spark.security.ports import ListeningPort, address_in, chosen_by_system, listening


@pytest.mark.parametrize(("address", "loopback"), [("127.0.0.1", True), ("127.0.0.7", True), ("0.0.0.0", False)])
def test_a_port_of_this_process_is_found(address: str, loopback: bool) -> None:
    with socket.create_server((address, 0)) as server:
        found = ListeningPort(os.getpid(), address, server.getsockname()[1])
        assert found in listening([os.getpid()])
        assert found.loopback is loopback
    assert found not in listening([os.getpid()])


def test_what_does_not_listen_is_left_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        ports = {port.port for port in listening([os.getpid()])}
        assert client.getsockname()[1] not in ports
    assert listening([2**22 + 1]) == ()


_LISTENS = """
import socket, sys
with socket.create_server(("0.0.0.0", 0)) as server:
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()
"""


def test_a_port_in_a_network_of_its_own_is_found() -> None:
    """As of a process in a container: the network of this process does not show it."""
    with subprocess.Popen(
        ["unshare", "--net", "--map-root-user", sys.executable, "-c", _LISTENS],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as child:  # fmt: skip
        assert child.stdout is not None and child.stdin is not None
        told = child.stdout.readline()
        if not told:
            pytest.skip("this machine lets no process have a network of its own")
        with socket.create_server(("127.0.0.1", 0)) as server:
            found = listening([os.getpid(), child.pid])
            assert ListeningPort(os.getpid(), "127.0.0.1", server.getsockname()[1]) in found
        assert ListeningPort(child.pid, "0.0.0.0", int(told)) in found
        child.stdin.close()


def test_ports_that_the_system_chooses_are_those_of_its_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert chosen_by_system(server.getsockname()[1])
    monkeypatch.setattr(ports, "_PROC", tmp_path)
    assert [chosen_by_system(port) for port in (4040, 32768, 60999, 61000)] == [False, True, True, False]
    (tmp_path / "sys/net/ipv4").mkdir(parents=True)
    (tmp_path / "sys/net/ipv4/ip_local_port_range").write_text("2000\t5000\n")
    assert [chosen_by_system(port) for port in (4040, 32768)] == [True, False]


@pytest.mark.parametrize(
    ("text", "address", "loopback"),
    [
        ("0100007F", "127.0.0.1", True),
        ("0000000000000000FFFF00000200007F", "127.0.0.2", True),
        ("00000000000000000000000001000000", "::1", True),
        ("00000000000000000000000000000000", "::", False),
        ("0000000000000000FFFF000000000000", "0.0.0.0", False),
    ],
)
def test_addresses_as_the_kernel_writes_them(text: str, address: str, loopback: bool) -> None:
    assert address_in(text) == address
    assert ListeningPort(1, address, 1).loopback is loopback
