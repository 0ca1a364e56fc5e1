"""The endpoint answers requests, and no client can disturb another client or the driver."""

import contextlib
import os
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barograph.engines.spark.driver import endpoint as endpoint_module
from barograph.engines.spark.driver.client import DriverFailed, RemoteEngine, reachable, sockets
from barograph.engines.spark.driver.endpoint import Endpoint
from barograph.engines.spark.driver.framing import MOST_BYTES, Closed, address_of
from barograph.engines.spark.folders import state_folder
from barograph.model import BadInput, Node, Operator, Outcome, Plan, Rescale, Slot, Snapshot, Topology, Worker
from barograph.model.codec import from_json, to_json

SNAPSHOT = Snapshot(
    1.0, 2.0, (Node("node-1", 60.0),), (Topology("t", (Operator("source", 1, source=True),), ()),),
    (Worker(Slot("node-1"), "0", 4),), version=3,
)  # fmt: skip


class World:
    """A fake engine that remembers what was applied."""

    def __init__(self) -> None:
        self.applied: list[Plan] = []
        self.hold = threading.Event()
        self.hold.set()
        self.status_waits_for = threading.Event()
        self.status_waits_for.set()

    def status(self, _: Any) -> Any:
        self.status_waits_for.wait(10)
        return {"app": "a"}

    def apply(self, body: Any) -> Any:
        plan = from_json(Plan, body)
        self.hold.wait(10)
        self.applied.append(plan)
        return to_json(Outcome(done=("scaled",)))

    def fail(self, _: Any) -> Any:
        raise RuntimeError("the dog ate it")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def served(world: World) -> Iterator[Endpoint]:
    folder = state_folder() / "drivers"
    folder.mkdir(mode=0o700)
    verbs = {
        "observe": lambda _: to_json(SNAPSHOT), "apply": world.apply, "status": world.status,
        "freeze": lambda _: None, "fail": world.fail, "odd": lambda _: {"x": float("nan")},
    }  # fmt: skip
    opened = Endpoint(folder / "driver-1.sock", verbs, idle_s=30.0, talk_s=0.3)
    yield opened
    opened.close()


def test_the_port_over_the_socket(served: Endpoint, world: World) -> None:
    engine = RemoteEngine(served.path)
    plan = Plan(rescales=(Rescale("t", "split", 4),), version=3)
    assert engine.observe() == SNAPSHOT
    assert engine.apply(plan) == Outcome(done=("scaled",))
    assert world.applied == [plan]
    assert [status for _, status in reachable()] == [{"app": "a"}]
    engine.close()


def test_only_the_owner_can_open_it(served: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(served.path.parent.stat().st_mode) == 0o700
    me = os.getuid()
    monkeypatch.setattr(endpoint_module, "_peer_uid", lambda _: me + 1)
    with pytest.raises(Closed):
        RemoteEngine(served.path).observe()


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(BadInput, match="only you"):
        Endpoint(tmp_path / "driver-1.sock", {})


def test_bad_requests_are_answered_and_the_connection_goes_on(served: Endpoint) -> None:
    engine = RemoteEngine(served.path)
    with pytest.raises(BadInput, match="there is no verb 'jump'"):
        engine.ask("jump")
    with pytest.raises(BadInput, match="Plan has no field 'colour'"):
        engine.ask("apply", {"colour": "red"})
    with pytest.raises(DriverFailed, match="the dog ate it"):
        engine.ask("fail")
    assert engine.observe() == SNAPSHOT


def raw(served: Endpoint) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with address_of(served.path) as address:
        connection.connect(address)
    connection.settimeout(10)
    return connection


def test_a_client_that_hangs_in_the_middle_of_a_message_is_dropped_and_others_go_on(served: Endpoint) -> None:
    with raw(served) as hung:
        hung.sendall(struct.pack(">I", 100) + b'{"verb"')
        assert RemoteEngine(served.path).observe() == SNAPSHOT
        assert hung.recv(1) == b""  # dropped after its timeout


def test_a_message_above_the_size_limit_is_refused_unread(served: Endpoint) -> None:
    with raw(served) as greedy:
        greedy.sendall(struct.pack(">I", MOST_BYTES + 1))
        assert b"too long" in greedy.recv(1000)
        assert greedy.recv(1) == b""
    assert RemoteEngine(served.path).observe() == SNAPSHOT


def test_a_request_is_carried_out_completely_although_its_client_is_gone(served: Endpoint, world: World) -> None:
    world.hold.clear()
    with raw(served) as short_lived:
        body = b'{"verb": "apply", "body": {"cuts": ["t"]}}'
        short_lived.sendall(struct.pack(">I", len(body)) + body)
    world.hold.set()
    deadline = time.monotonic() + 10
    while not world.applied:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert world.applied == [Plan(cuts=("t",))]
    assert RemoteEngine(served.path).observe() == SNAPSHOT


def test_a_request_that_outlasts_its_client_is_said_so(served: Endpoint, world: World) -> None:
    world.hold.clear()
    engine = RemoteEngine(served.path)
    with pytest.raises(Closed, match=r"has not answered 'apply' within 0\.1 s, and may still carry it out"):
        engine.ask("apply", to_json(Plan(cuts=("t",))), 0.1)
    world.hold.set()
    assert engine.observe() == SNAPSHOT, "the late answer is not taken for another one"


def test_a_driver_that_does_not_answer_is_not_shown_as_none(
    served: Endpoint, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.status_waits_for.clear()
    late = f"the driver at {served.path} runs, but has not told its status within 0.1 s"
    try:
        assert reachable(within_s=0.1) == []
        assert [r.message for r in caplog.records if r.message.startswith(late)]
    finally:
        world.status_waits_for.set()
    assert [status for _, status in reachable()] == [{"app": "a"}]
    assert len(caplog.records) == 1, "one that answers is not warned about"


def test_a_stopped_driver_that_takes_no_connection_is_not_shown_as_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "driver-1.sock"
    with contextlib.ExitStack() as opened:
        stopped = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        with address_of(path) as address:
            stopped.bind(address)
            stopped.listen(0)
            opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)).connect(address)
        assert reachable([path], 0.1) == []
    assert [r.message for r in caplog.records if "runs, but has not told its status" in r.message]


def test_no_more_clients_than_allowed() -> None:
    folder = state_folder() / "drivers"
    folder.mkdir(mode=0o700)
    patient = Endpoint(folder / "driver-1.sock", {"observe": lambda _: to_json(SNAPSHOT)}, talk_s=60.0)
    many = [raw(patient) for _ in range(endpoint_module.MOST_CLIENTS)]
    try:
        # Clients are accepted one after the other: an answer to the last one means that all were accepted.
        with pytest.raises(Closed):
            for _ in range(3):
                RemoteEngine(patient.path).observe()
    finally:
        for connection in many:
            connection.close()
        patient.close()


def test_silent_clients_in_every_place_lock_none_out_for_longer_than_a_message_may_take(served: Endpoint) -> None:
    """The one that was silent for longest makes room; the others stay."""
    many = [raw(served) for _ in range(endpoint_module.MOST_CLIENTS)]
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                assert RemoteEngine(served.path).observe() == SNAPSHOT
                break
            except Closed:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        assert many[0].recv(1) == b""
        many[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            many[-1].recv(1)
    finally:
        for connection in many:
            connection.close()


def test_a_closed_endpoint_leaves_no_socket(served: Endpoint) -> None:
    assert served.path in sockets()
    served.close()
    assert sockets() == ()
    with pytest.raises(Closed, match="no driver answers"):
        RemoteEngine(served.path).observe()


def test_paths_longer_than_the_kernel_accepts(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 90) / ("y" * 90)
    folder.mkdir(mode=0o700, parents=True)
    opened = Endpoint(folder / "driver-1.sock", {"observe": lambda _: to_json(SNAPSHOT)})
    assert RemoteEngine(opened.path).observe() == SNAPSHOT
    opened.close()


def test_a_client_that_sends_byte_by_byte_is_dropped_when_its_message_takes_too_long(served: Endpoint) -> None:
    """The deadline is that of the message: each byte comes in time, and yet the client loses its place."""
    with raw(served) as slow:
        slow.sendall(struct.pack(">I", 1000))
        deadline = time.monotonic() + 5
        with pytest.raises(OSError):  # a broken pipe or a reset
            while time.monotonic() < deadline:
                slow.sendall(b" ")
                time.sleep(0.05)


def test_slow_clients_in_every_place_lock_none_out_for_longer_than_a_message_may_take(served: Endpoint) -> None:
    many = [raw(served) for _ in range(endpoint_module.MOST_CLIENTS)]
    for connection in many:
        connection.sendall(struct.pack(">I", 1000))
    stop = threading.Event()

    def trickle() -> None:
        while not stop.wait(0.05):
            for connection in many:
                with contextlib.suppress(OSError):
                    connection.sendall(b" ")

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        deadline = time.monotonic() + 5
        while True:
            try:
                assert RemoteEngine(served.path).observe() == SNAPSHOT
                break
            except Closed:
                assert time.monotonic() < deadline
                time.sleep(0.05)
    finally:
        stop.set()
        thread.join()
        for connection in many:
            connection.close()


def test_a_process_without_file_descriptors_takes_clients_again_when_it_has_some() -> None:
    """In a process of its own, with a low limit: accept fails with EMFILE, and later it does not."""
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_DESCRIPTORS], capture_output=True, text=True, timeout=50, check=False
    )
    assert ended.stdout == "answered\n", ended.stderr
    assert "cannot take a client now" in ended.stderr


WITHOUT_DESCRIPTORS = """
import logging, os, resource, tempfile, threading
from pathlib import Path
from barograph.engines.spark.driver.client import RemoteEngine
from barograph.engines.spark.driver.endpoint import Endpoint
logging.basicConfig()
warned = threading.Event()
logging.getLogger().handlers[0].addFilter(lambda record: warned.set() or True)
folder = Path(tempfile.mkdtemp())
served = Endpoint(folder / "driver-1.sock", {"status": lambda _: {}})
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    pass
os.close(taken.pop())  # for the client's own end; none is left for the endpoint's
client = RemoteEngine(served.path)
connection = client._connect()
assert warned.wait(30)
for descriptor in taken:
    os.close(descriptor)
client.status()
client.close()
client.status()  # a second client is taken too
print("answered")
"""


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"a":' * 200_000], ids=["lists", "objects"])
def test_a_deeply_nested_message_is_answered(served: Endpoint, body: bytes) -> None:
    with raw(served) as deep:
        deep.sendall(struct.pack(">I", len(body)) + body)
        assert b"inside each other" in deep.recv(1000)
    assert RemoteEngine(served.path).observe() == SNAPSHOT


def test_an_answer_that_is_no_json_is_told_and_the_connection_goes_on(served: Endpoint) -> None:
    engine = RemoteEngine(served.path)
    with pytest.raises(DriverFailed, match="JSON"):
        engine.ask("odd")
    assert engine.observe() == SNAPSHOT
