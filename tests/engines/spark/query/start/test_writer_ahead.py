"""Writers that are made ahead leave nothing behind that only a rare collection of garbage would free, and a program can
end while one is being made."""

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from py4j.java_gateway import GatewayProperty, JavaObject
from tests.engines.spark.query.fake_engine import FakeEngine, FakeWriter
from tests.polling import until

from barograph.engines.spark.query.start.writer_ahead import WriterAhead


class NoGateway:
    """What Py4J needs to make an object of the JVM, without a JVM: every member is a method, every object is let go."""

    address, port, is_connected = "127.0.0.1", 0, True
    gateway_property, converters = GatewayProperty(False, None, True), ()

    def __init__(self) -> None:
        self.let_go: list[str] = []

    def garbage_collect_object(self, target: str, *_: object) -> None:
        self.let_go.append(target)

    def send_command(self, *_: object, **__: object) -> str:
        return "!yo"


@pytest.fixture
def rare_collections() -> Iterator[None]:
    """As in a large process, where the oldest generation is hardly ever collected."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("rare_collections")
def test_java_objects_of_earlier_runs_are_let_go_of() -> None:
    gateway = NoGateway()

    def build() -> FakeWriter:
        for number in range(10):  # as each step of a query makes one, and calls a method of it
            assert JavaObject(f"o{number}", gateway).select is not None
        return FakeWriter(FakeEngine(), [None])

    ahead = WriterAhead(build, None)
    for count in (10, 20, 30):
        ahead.prepare()
        until(lambda count=count: len(gateway.let_go) == count)  # type: ignore[misc]
        assert isinstance(ahead.take(), FakeWriter)
    ahead.close()


HANGS = """
import threading
from barograph.engines.spark.query.start.writer_ahead import WriterAhead

begun = threading.Event()

def build():
    begun.set()
    threading.Event().wait()

ahead = WriterAhead(build, None)
ahead.prepare()
assert begun.wait(60.0)
if {closes}:
    ahead.close()
print("ends")
"""


@pytest.mark.parametrize("closes", [False, True])
def test_a_program_ends_though_its_function_hangs(closes: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGS.format(closes=closes)], capture_output=True, text=True, timeout=30.0, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


def test_what_is_made_ahead_is_taken_and_its_error_is_told_once() -> None:
    calls: list[str] = []

    def build() -> FakeWriter:
        calls.append(threading.current_thread().name)
        if len(calls) == 2:
            raise SystemExit(3)
        return FakeWriter(FakeEngine(), [None])

    ahead = WriterAhead(build, None)
    ahead.prepare()
    until(lambda: ahead._made is not None and ahead._made.done())
    assert isinstance(ahead.take(), FakeWriter) and calls == ["writer-ahead"]
    ahead.prepare()
    until(lambda: ahead._made is not None and ahead._made.done())
    assert isinstance(ahead.take(), FakeWriter) and calls[2:] == [threading.current_thread().name]
    ahead.close()
    until(lambda: not ahead._thread.is_alive())
    ahead.prepare()
    assert isinstance(ahead.take(), FakeWriter) and len(calls) == 4
