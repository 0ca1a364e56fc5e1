"""Whatever clients send, in whatever pieces, and however they leave: each gets its own answers, and a place is free for
the next as soon as one is."""

import contextlib
import errno
import json
import os
import shutil
import socket
import struct
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barograph.engines.spark.driver import endpoint as endpoint_module
from barograph.engines.spark.driver.client import RemoteEngine
from barograph.engines.spark.driver.endpoint import Endpoint
from barograph.engines.spark.driver.framing import Closed, address_of, receive
from barograph.model import BadInput

pytestmark = pytest.mark.limit(300)  # hundreds of short waits, which take long beside other work
MOST, ANSWER_S = 4, 30.0
bodies = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
garbage = st.one_of(
    st.binary(min_size=4, max_size=40).map(lambda b: struct.pack(">I", len(b)) + b),
    st.sampled_from([struct.pack(">I", 2**32 - 1), struct.pack(">I", 90_000) + b"[" * 90_000, struct.pack(">I", 0)]),
)


def framed(verb: str, body: Any) -> bytes:
    content = json.dumps({"verb": verb, "body": body}).encode()
    return struct.pack(">I", len(content)) + content


class Clients(RuleBasedStateMachine):
    """clients: those with a connection in order, with what they have sent of a message that is not complete yet."""

    @initialize()
    def serve(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="endpoint-"))
        self.folder.chmod(0o700)
        self.done: list[Any] = []
        self.refused = 0  # how many accepts still fail
        self.hold = threading.Event()
        self.hold.set()
        with patch.object(endpoint_module, "MOST_CLIENTS", MOST):
            verbs = {"echo": lambda body: body, "fail": self.fail, "note": self.note}
            self.endpoint = Endpoint(self.folder / "driver-1.sock", verbs, talk_s=300.0)
        take = self.endpoint._take

        def limited(connection: socket.socket) -> None:
            if self.refused:
                self.refused -= 1
                connection.close()
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            take(connection)

        self.endpoint._take = limited  # type: ignore[method-assign]
        self.clients: dict[socket.socket, bytes] = {}

    def fail(self, body: Any) -> Any:
        raise KeyError(str(body))

    def note(self, body: Any) -> Any:
        self.hold.wait(ANSWER_S)
        self.done.append(body)

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with address_of(self.endpoint.path) as address:
            connection.connect(address)
        return connection

    @precondition(lambda self: len(self.clients) < MOST)
    @rule()
    def a_client_comes(self) -> None:
        """There is a place for it, but for the moments in which another one leaves or no descriptor is left."""
        deadline = time.monotonic() + ANSWER_S
        while True:
            connection = self.connect()
            try:
                self.asked(connection, "echo", "hello")
            except (Closed, OSError):
                connection.close()
                assert time.monotonic() < deadline, "there is a place, and no client gets it"
                time.sleep(0.01)
            else:
                self.clients[connection] = b""
                return

    def asked(self, connection: socket.socket, verb: str, body: Any) -> dict[str, Any]:
        connection.sendall(framed(verb, body))
        answer: dict[str, Any] = receive(connection, ANSWER_S, ANSWER_S)
        return answer

    def whole(self) -> list[socket.socket]:
        return [c for c, begun in self.clients.items() if not begun]

    @precondition(lambda self: self.whole())
    @rule(data=st.data(), body=bodies)
    def a_client_asks(self, data: st.DataObject, body: Any) -> None:
        assert self.asked(data.draw(st.sampled_from(self.whole())), "echo", body) == {"ok": True, "body": body}

    @precondition(lambda self: len(self.whole()) > 1)
    @rule(ones=bodies, others=bodies)
    def two_clients_ask_at_once(self, ones: Any, others: Any) -> None:
        one, other, *_ = self.whole()
        one.sendall(framed("echo", ones))
        other.sendall(framed("echo", others))
        assert receive(other, ANSWER_S, ANSWER_S)["body"] == others
        assert receive(one, ANSWER_S, ANSWER_S)["body"] == ones

    @precondition(lambda self: self.whole())
    @rule(data=st.data(), verb=st.sampled_from(("fail", "jump", "")))
    def a_request_that_fails_is_answered(self, data: st.DataObject, verb: str) -> None:
        answer = self.asked(data.draw(st.sampled_from(self.whole())), verb, 1)
        assert answer["ok"] is False and answer["kind"] == ("failed" if verb == "fail" else "bad input")

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), body=bodies)
    def a_message_comes_in_pieces(self, data: st.DataObject, body: Any) -> None:
        connection = data.draw(st.sampled_from(list(self.clients)))
        left = self.clients[connection] or framed("echo", body)
        count = data.draw(st.integers(1, len(left)))
        connection.sendall(left[:count])
        self.clients[connection] = left[count:]
        if count == len(left):
            assert receive(connection, ANSWER_S, ANSWER_S)["ok"] is True

    @precondition(lambda self: self.whole())
    @rule(data=st.data(), content=garbage)
    def what_is_no_message_is_answered_or_ends_the_connection(self, data: st.DataObject, content: bytes) -> None:
        connection = data.draw(st.sampled_from(self.whole()))
        del self.clients[connection]
        with connection:
            connection.sendall(content)
            with contextlib.suppress(Closed, OSError):  # it may be dropped before it has read the answer
                assert receive(connection, ANSWER_S, ANSWER_S)["kind"] == "bad input"

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def a_client_is_gone(self, data: st.DataObject) -> None:
        connection = data.draw(st.sampled_from(list(self.clients)))
        del self.clients[connection]
        connection.close()

    @precondition(lambda self: self.whole())
    @rule(data=st.data(), number=st.integers())
    def a_request_is_carried_out_although_its_client_is_gone(self, data: st.DataObject, number: int) -> None:
        connection = data.draw(st.sampled_from(self.whole()))
        del self.clients[connection]
        self.hold.clear()
        before = len(self.done)
        connection.sendall(framed("note", number))
        connection.close()
        self.hold.set()
        deadline = time.monotonic() + ANSWER_S
        while len(self.done) == before:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert self.done[before:] == [number]

    @rule(count=st.integers(1, 2))
    def no_descriptor_is_left_for_a_moment(self, count: int) -> None:
        self.refused = count

    @invariant()
    def it_serves(self) -> None:
        if hasattr(self, "endpoint"):
            assert self.endpoint.path.exists()

    def teardown(self) -> None:
        """All leave: every place is free again."""
        if not hasattr(self, "endpoint"):
            return
        for connection in self.clients:
            connection.close()
        self.clients = {}
        self.refused = 0
        for _ in range(MOST):
            self.a_client_comes()
        for connection in self.clients:
            assert self.asked(connection, "echo", 7)["body"] == 7
            connection.close()
        self.endpoint.close()
        shutil.rmtree(self.folder)
        try:
            RemoteEngine(self.endpoint.path).ask("echo")
        except (Closed, BadInput):
            return
        raise AssertionError("a closed endpoint answers")


TestClients = Clients.TestCase
TestClients.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
