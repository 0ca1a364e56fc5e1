"""The one local endpoint of a driver: observe, apply, status, freeze, for processes of the same user.

A Unix socket that only its owner may open, in a folder that only its owner may enter; the kernel says who asks. Each
client has a thread and a time limit, so that one that hangs, or is killed in the middle of a word, disturbs nobody.
What was ordered is carried out whole even when who ordered it is gone. Nothing is decided here.
"""

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from barograph.engines.spark.messages import Closed, address_of, receive, send
from barograph.model import BadInput

IDLE_S = 600.0  # a controller asks every few seconds; who is silent for longer may connect anew
TALK_S = 10.0  # from the first byte of a message to its last, either way
MOST_CLIENTS = 32
_PEER = struct.Struct("3i")

Verb = Callable[[Any], Any]


class Endpoint:
    """Serves until it is closed. verbs: name -> what takes the request's body and gives the answer's."""

    def __init__(self, path: Path, verbs: Mapping[str, Verb], idle_s: float = IDLE_S, talk_s: float = TALK_S) -> None:
        self.path = path
        self._verbs, self._idle_s, self._talk_s = dict(verbs), idle_s, talk_s
        self._clients = threading.BoundedSemaphore(MOST_CLIENTS)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        _require_private(path.parent)
        path.unlink(missing_ok=True)
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with address_of(path) as address:
            self._server.bind(address)
        path.chmod(0o600)  # nobody else gets into the folder, so there is no moment in which it is open
        self._server.listen(MOST_CLIENTS)
        threading.Thread(target=self._accept, name="endpoint", daemon=True).start()

    def close(self) -> None:
        """Stop serving; clients find the connection closed."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._server.close()
        self.path.unlink(missing_ok=True)
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            if _peer_uid(connection) != os.getuid() or not self._clients.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection,), name="endpoint-client", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)
        try:
            with connection:
                while not self._closed:
                    connection.settimeout(self._idle_s)
                    try:
                        request = receive(connection, self._talk_s)
                    except BadInput as error:  # what follows cannot be told from what is left of it
                        send(connection, {"ok": False, "kind": "bad input", "error": str(error)})
                        return
                    answer = self._answer(request)
                    connection.settimeout(self._talk_s)
                    send(connection, answer)
        except (Closed, OSError):
            pass  # the client is gone or hangs; the topologies are none of its business
        finally:
            with self._lock:
                self._open.discard(connection)
            self._clients.release()

    def _answer(self, request: Any) -> dict[str, Any]:
        try:
            if not isinstance(request, dict) or not isinstance(request.get("verb"), str):
                raise BadInput("a request must be an object with a verb")
            verb = self._verbs.get(request["verb"])
            if verb is None:
                raise BadInput(f"there is no verb {request['verb']!r}; there are {', '.join(self._verbs)}")
            return {"ok": True, "body": verb(request.get("body"))}
        except BadInput as error:
            return {"ok": False, "kind": "bad input", "error": str(error)}
        except Exception as error:  # the thread must answer whatever went wrong; the client is told what
            return {"ok": False, "kind": "failed", "error": f"{type(error).__name__}: {error}"}


def _peer_uid(connection: socket.socket) -> int:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(raw)[1])


def _require_private(folder: Path) -> None:
    seen = folder.stat()
    if seen.st_uid != os.getuid() or seen.st_mode & 0o077:
        raise BadInput(f"{folder} is not used for a socket: it must be a folder that only you can enter")
