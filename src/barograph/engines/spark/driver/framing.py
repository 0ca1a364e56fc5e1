"""Messages between two processes of one user over a Unix socket: a length, then JSON. Bounded in size and time.

Decides nothing. ``endpoint`` is the server's side, ``client`` the client's.
"""

import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barograph.model import BadInput

MOST_BYTES = 64 << 20  # a snapshot of 36,000 instances is 10 MB
_HEAD = struct.Struct(">I")
_PATH_BYTES = 100  # the kernel accepts 107


class Closed(ConnectionError):  # noqa: N818  # named like what happened
    """The other side is gone, or did not answer in time."""


class TimedOut(Closed):
    """The other side did not send the message in time."""


def send(connection: socket.socket, message: object, within_s: float) -> None:
    """Send one message as a whole within this time. Raises BadInput for a value that cannot be a message."""
    try:
        content = json.dumps(message, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"a message cannot be written as JSON: {error}") from error
    if len(content) > MOST_BYTES:
        raise BadInput(f"a message of {len(content)} bytes is too long: at most {MOST_BYTES}")
    connection.settimeout(within_s)  # of sendall this is the time for all bytes together
    try:
        connection.sendall(_HEAD.pack(len(content)) + content)
    except OSError as error:
        raise Closed(f"the message could not be sent: {error}") from error


def receive(connection: socket.socket, first_s: float, rest_s: float, begun: Callable[[], None] = lambda: None) -> Any:
    """The next message: its first byte within first_s, all others together within rest_s of the first.

    begun: called when the first byte has come. The time is that of the whole message, not of each read: a peer that
    sends a byte now and then is too slow.
    """
    head = _exactly(connection, 1, time.monotonic() + first_s)
    begun()
    deadline_s = time.monotonic() + rest_s
    (length,) = _HEAD.unpack(head + _exactly(connection, _HEAD.size - 1, deadline_s))
    if length > MOST_BYTES:
        raise BadInput(f"a message of {length} bytes is too long: at most {MOST_BYTES}")
    try:
        return json.loads(_exactly(connection, length, deadline_s))
    except RecursionError as error:
        raise BadInput("a message has too many lists or objects inside each other") from error
    except ValueError as error:
        raise BadInput(f"a message is not JSON: {error}") from error


def _exactly(connection: socket.socket, count: int, deadline_s: float) -> bytes:
    pieces, missing = [], count
    while missing:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimedOut("no message came in time")
        connection.settimeout(left_s)
        try:
            piece = connection.recv(min(missing, 1 << 20))
        except TimeoutError as error:
            raise TimedOut("no message came in time") from error
        except OSError as error:
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
