"""A driver from another process: the engine port over its endpoint. Killing who uses it leaves the topologies alone.

Needs no Spark. One connection, opened when first used and again after it broke; one question at a time.
"""

import socket
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barograph.engines.spark.folders import state_folder
from barograph.engines.spark.messages import Closed, address_of, receive, send
from barograph.model import BadInput, Outcome, Plan, Snapshot
from barograph.model.codec import from_json, to_json

SOCKETS = "driver-*.sock"
ANSWER_S = 30.0
APPLY_S = 300.0  # a cut under heavy overload takes a while, and a query that is down is waited for


class DriverFailed(RuntimeError):  # noqa: N818  # named like what happened
    """The driver answered that it could not. The text says why."""


class RemoteEngine:
    """The engine port, served by a driver process elsewhere on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: socket.socket | None = None
        self._lock = threading.Lock()

    def observe(self) -> Snapshot:
        return from_json(Snapshot, self.ask("observe"))

    def apply(self, plan: Plan) -> Outcome:
        return from_json(Outcome, self.ask("apply", to_json(plan), APPLY_S))

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("status")
        return found

    def freeze(self, on: bool = True) -> None:
        """While frozen no plan is applied; topologies go on as they are, and what dies is still started again."""
        self.ask("freeze", {"on": on})

    def ask(self, verb: str, body: object = None, timeout_s: float = ANSWER_S) -> Any:
        """One question. Closed when nobody answers, BadInput or DriverFailed when the answer is no."""
        with self._lock:
            try:
                connection = self._connection or self._connect()
                connection.settimeout(timeout_s)
                send(connection, {"verb": verb, "body": body})
                answer = receive(connection)
            except BaseException:
                self._drop()  # half a conversation cannot be gone on with
                raise
        if answer["ok"]:
            return answer["body"]
        raise (BadInput if answer["kind"] == "bad input" else DriverFailed)(answer["error"])

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(5.0)
        try:
            with address_of(self.path) as address:
                connection.connect(address)
        except OSError as error:
            connection.close()
            raise Closed(f"no driver answers at {self.path}: {error.strerror or error}") from error
        self._connection = connection
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def sockets() -> tuple[Path, ...]:
    """Where drivers of this user listen, or listened: below the embedded clusters they use, or on their own."""
    state = state_folder()
    return tuple(sorted([*state.glob(f"runs/*/{SOCKETS}"), *state.glob(f"drivers/{SOCKETS}")]))


def reachable(paths: Iterable[Path] | None = None) -> list[tuple[RemoteEngine, dict[str, Any]]]:
    """Every driver that answers, with its status."""
    found = []
    for path in sockets() if paths is None else paths:
        engine = RemoteEngine(path)
        try:
            found.append((engine, engine.status()))
        except (Closed, DriverFailed):
            engine.close()
    return found
