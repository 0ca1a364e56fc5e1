"""A driver as seen from another process: the engine port over its endpoint.

Needs no Spark. One connection, opened at the first use and again after it broke; one request at a time. If the process
that uses it is killed, the topologies go on.
"""

import contextlib
import logging
import os
import secrets
import socket
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barograph.engines.spark.driver.framing import Closed, TimedOut, address_of, receive, send
from barograph.engines.spark.folders import state_folder
from barograph.logs import OnceOnly
from barograph.model import BadInput, Outcome, Plan, Snapshot
from barograph.model.codec import from_json, to_json

log = logging.getLogger(__name__)
_warnings = OnceOnly(log)

SOCKETS = "driver-*.sock"
ANSWER_S = 30.0
APPLY_S = 300.0  # a cut under heavy overload takes a while, and so does the restart of a query
NODES_S = 60.0  # releasing a node ends its processes in order, which takes a while


class DriverFailed(RuntimeError):  # noqa: N818  # named like what happened
    """The driver answered that the request failed. The text says why."""


class RemoteEngine:
    """The engine port, served by a driver process elsewhere on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.observer = f"{os.getpid()}-{secrets.token_hex(4)}"  # the driver keeps a baseline for each
        self._connection: socket.socket | None = None
        self._lock = threading.Lock()

    def observe(self, observer: str | None = None) -> Snapshot:
        """observer: this engine's own name unless another is given."""
        return from_json(Snapshot, self.ask("observe", {"observer": observer or self.observer}))

    def glance(self) -> Snapshot:
        """The cluster as it is, with the metrics that ``observe`` returned last."""
        return from_json(Snapshot, self.ask("glance", {"observer": self.observer}))

    def apply(self, plan: Plan) -> Outcome:
        return from_json(Outcome, self.ask("apply", to_json(plan), APPLY_S))

    def keep_nodes(self, release: Iterable[str] = (), fetch: Iterable[str] = ()) -> Outcome:
        """Release idle nodes and fetch others. The outcome leaves out those that stay as they are."""
        return from_json(Outcome, self.ask("nodes", {"release": list(release), "fetch": list(fetch)}, NODES_S))

    def status(self, timeout_s: float = ANSWER_S) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("status", timeout_s=timeout_s)
        return found

    def freeze(self, on: bool = True) -> None:
        """While frozen no plan is applied; topologies go on as they are, and queries that die are still restarted."""
        self.ask("freeze", {"on": on})

    def controllers(self) -> list[dict[str, Any]]:
        """Those that are attached to the driver, and the last ones that were; oldest first."""
        found: list[dict[str, Any]] = self.ask("controllers")
        return found

    def ask(self, verb: str, body: object = None, timeout_s: float = ANSWER_S) -> Any:
        """One request. Raises Closed if the driver does not answer, BadInput or DriverFailed if the request failed."""
        with self._lock:
            connection = self._connection or self._connect()
            try:
                send(connection, {"verb": verb, "body": body}, timeout_s)
                answer = receive(connection, timeout_s, timeout_s)
            except TimedOut as error:
                self._drop()
                late = f"the driver has not answered {verb!r} within {timeout_s:g} s, and may still carry it out"
                raise TimedOut(late) from error
            except BaseException:
                self._drop()  # a connection cannot be used after half a message
                raise
        if answer["ok"]:
            return answer["body"]
        raise (BadInput if answer["kind"] == "bad input" else DriverFailed)(answer["error"])

    def interrupt(self) -> None:
        """Break the connection: a request under way fails at once. It takes no lock: a signal handler may call it."""
        if (connection := self._connection) is not None:
            with contextlib.suppress(OSError):  # it was closed meanwhile
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(5.0)
        try:
            with address_of(self.path) as address:
                connection.connect(address)
        except (BlockingIOError, TimeoutError) as error:  # others wait for it to take their connections
            connection.close()
            raise TimedOut("the driver takes no connection now") from error
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
    """Sockets of this user's drivers, also of drivers that are gone: with and without an embedded cluster."""
    state = state_folder()
    return tuple(sorted([*state.glob(f"runs/*/{SOCKETS}"), *state.glob(f"drivers/{SOCKETS}")]))


def reachable(
    paths: Iterable[Path] | None = None, within_s: float = ANSWER_S
) -> list[tuple[RemoteEngine, dict[str, Any]]]:
    """Every driver that answers within this time, with its status. One that is there but does not tell it is warned
    about."""
    found = []
    for path in sockets() if paths is None else paths:
        engine = RemoteEngine(path)
        try:
            found.append((engine, engine.status(within_s)))
            _warnings.over(str(path))
        except TimedOut:
            late = f"the driver at {path} runs, but has not told its status within {within_s:g} s, and is left out"
            advice = "look at its log, and ask again or end its process, whose number is in that name"
            _leave_out(engine, f"{late}: it is stopped, hangs or is busy; {advice}")
        except Closed:  # the socket of a driver that has ended, or that is just ending
            engine.close()
        except DriverFailed as error:
            _leave_out(engine, f"the driver at {path} did not tell its status: {error}; it is left out")
    return found


def _leave_out(engine: RemoteEngine, why: str) -> None:
    _warnings.warn(str(engine.path), why)
    engine.close()
