"""Messages between two processes of one user over a Unix socket: a length, then JSON. Bounded in size and time.

Decides nothing. ``endpoint`` is the server's side, ``client`` the client's.
"""

import json
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barograph.model import BadInput

MOST_BYTES = 64 << 20  # a snapshot of 36,000 instances is 10 MB
_HEAD = struct.Struct(">I")
_PATH_BYTES = 100  # the kernel accepts 107


class Closed(ConnectionError):  # noqa: N818  # named like what happened
    """The other side is gone, or did not answer in time."""


def send(connection: socket.socket, message: object) -> None:
    content = json.dumps(message, allow_nan=False).encode()
    if len(content) > MOST_BYTES:
        raise BadInput(f"a message of {len(content)} bytes is too long: at most {MOST_BYTES}")
    try:
        connection.sendall(_HEAD.pack(len(content)) + content)
    except OSError as error:
        raise Closed(f"the message could not be sent: {error}") from error


def receive(connection: socket.socket, rest_s: float | None = None) -> Any:
    """The next message. The connection's own timeout applies to its first byte, ``rest_s`` to the others."""
    head = _exactly(connection, 1)
    if rest_s is not None:
        connection.settimeout(rest_s)
    (length,) = _HEAD.unpack(head + _exactly(connection, _HEAD.size - 1))
    if length > MOST_BYTES:
        raise BadInput(f"a message of {length} bytes is too long: at most {MOST_BYTES}")
    try:
        return json.loads(_exactly(connection, length))
    except ValueError as error:
        raise BadInput(f"a message is not JSON: {error}") from error


def _exactly(connection: socket.socket, count: int) -> bytes:
    pieces, missing = [], count
    while missing:
        try:
            piece = connection.recv(min(missing, 1 << 20))
        except OSError as error:  # also a timeout
            raise Closed(f"no message came: {error}") from error
        if not piece:
            raise Closed("the other side has closed the connection")
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


@contextmanager
def address_of(path: Path) -> Iterator[str]:
    """A socket's address. If the path is longer than the kernel accepts, it is a path through the open folder."""
    if len(os.fsencode(path)) <= _PATH_BYTES:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
