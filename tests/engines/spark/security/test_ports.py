"""Which ports processes listen on."""

import os
import socket

import pytest

from barograph.engines.spark.security.ports import ListeningPort, address_in, listening


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
