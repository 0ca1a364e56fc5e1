"""Writers that are made ahead leave nothing behind that only a rare collection of garbage would free."""

import gc
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
