"""The local endpoint of a driver, for other processes of the same user. It serves the verbs it is given.

A Unix socket that only its owner may open, in a folder that only its owner may enter; clients of another user, as the
kernel identifies them, are refused. Each client has a thread, and each message a deadline, so that a client that hangs,
is slow, or is killed in the middle of a message does not disturb the others. If every place is taken, the client that
has been silent for longest loses its place. A process that has no file descriptor left takes no client for a moment,
and then again. A request is carried out completely even if its client is gone. Nothing is decided here.
"""

import contextlib
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from barograph.engines.spark.backoff import doubled_s
from barograph.engines.spark.driver.framing import Closed, address_of, receive, send
from barograph.logs import OnceOnly
from barograph.model import BadInput

log = logging.getLogger(__name__)

IDLE_S = 600.0  # a controller asks every few seconds; a client that is silent for longer must connect again
TALK_S = 10.0  # from the first byte of a message to its last, either way
MOST_CLIENTS = 32
_LEAVE_S = 1.0  # until a client that has lost its place is gone
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 1.0  # before the next client, while none can be taken
_PEER = struct.Struct("3i")

Verb = Callable[[Any], Any]


class Endpoint:
    """Serves until it is closed. verbs: name -> a function from the body of the request to the body of the answer."""

    def __init__(self, path: Path, verbs: Mapping[str, Verb], idle_s: float = IDLE_S, talk_s: float = TALK_S) -> None:
        self.path = path
        self._verbs, self._idle_s, self._talk_s = dict(verbs), idle_s, talk_s
        self._clients = threading.BoundedSemaphore(MOST_CLIENTS)
        self._open: set[socket.socket] = set()
        self._silent_since_s: dict[socket.socket, float] = {}  # clients of which no message has begun
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._warnings = OnceOnly(log)
        _require_private(path.parent)
        path.unlink(missing_ok=True)
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with address_of(path) as address:
            self._server.bind(address)
        path.chmod(0o600)  # the folder is private, so the socket is never open to others
        self._server.listen(MOST_CLIENTS)
        threading.Thread(target=self._accept, name="endpoint", daemon=True).start()

    def close(self) -> None:
        """Stop serving; clients find the connection closed."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._server.close()
        self.path.unlink(missing_ok=True)
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        failures = 0
        while not self._closed.is_set():
            try:
                self._take(self._server.accept()[0])
            except (OSError, RuntimeError) as error:  # no file descriptor or no thread is left, for a moment
                if self._closed.is_set():
                    return
                self._warnings.warn(
                    "accept", f"the endpoint {self.path} cannot take a client now: {error}; it goes on trying"
                )
                self._closed.wait(doubled_s(_FIRST_WAIT_S, failures, _LONGEST_WAIT_S))
                failures += 1
            else:
                failures = 0
                self._warnings.over("accept")

    def _take(self, connection: socket.socket) -> None:
        """Serve the client in a thread of its own, or close the connection."""
        try:
            if _peer_uid(connection) != os.getuid() or not self._has_place():
                connection.close()
                return
        except OSError:
            connection.close()  # this client has gone already; the next may be taken at once
            return
        try:
            threading.Thread(target=self._serve, args=(connection,), name="endpoint-client", daemon=True).start()
        except RuntimeError:
            connection.close()
            self._clients.release()
            raise

    def _has_place(self) -> bool:
        if self._clients.acquire(blocking=False):
            return True
        with self._lock:
            silent = min(self._silent_since_s, key=lambda c: self._silent_since_s[c], default=None)
            if silent is None or time.monotonic() - self._silent_since_s[silent] < self._talk_s:
                return False
            log.info("a client of %s that was silent for %g s loses its place to another", self.path, self._talk_s)
            with contextlib.suppress(OSError):
                silent.shutdown(socket.SHUT_RDWR)  # wakes its thread, which leaves
        return self._clients.acquire(timeout=_LEAVE_S)

    def _serve(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)
        try:
            with connection:
                while not self._closed.is_set():
                    try:
                        request = self._next(connection)
                    except BadInput as error:  # the start of the next message is unknown
                        send(connection, {"ok": False, "kind": "bad input", "error": str(error)}, self._talk_s)
                        return
                    self._send(connection, self._answer(request))
        except (Closed, OSError) as error:  # it has closed the connection, or it hangs; topologies go on
            log.debug("a client has left the endpoint %s: %s", self.path, error)
        finally:
            with self._lock:
                self._open.discard(connection)
            self._clients.release()

    def _next(self, connection: socket.socket) -> Any:
        with self._lock:
            self._silent_since_s[connection] = time.monotonic()

        def heard() -> None:
            with self._lock:
                self._silent_since_s.pop(connection, None)

        try:
            return receive(connection, self._idle_s, self._talk_s, heard)
        finally:
            heard()

    def _send(self, connection: socket.socket, answer: dict[str, Any]) -> None:
        try:
            send(connection, answer, self._talk_s)
        except BadInput as error:  # the answer is too long, or a value in it is no JSON
            send(connection, {"ok": False, "kind": "failed", "error": str(error)}, self._talk_s)

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
        except Exception as error:  # noqa: BLE001  # the client gets an answer whatever went wrong
            what = f"{type(error).__name__}: {error}"
            self._warnings.warn(request["verb"], f"{request['verb']} failed: {what}; its client was told so")
            return {"ok": False, "kind": "failed", "error": what}


def _peer_uid(connection: socket.socket) -> int:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(raw)[1])


def _require_private(folder: Path) -> None:
    seen = folder.stat()
    if seen.st_uid != os.getuid() or seen.st_mode & 0o077:
        raise BadInput(f"{folder} is not used for a socket: it must be a folder that only you can enter")
