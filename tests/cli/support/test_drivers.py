"""The driver that a command is about is found by name, process id or socket; else one sentence says what to do."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barograph.cli.support.drivers import find_driver
from barograph.engines.spark.driver.endpoint import Endpoint
from barograph.engines.spark.folders import state_folder
from barograph.model import BadInput

Serve = Callable[..., Path]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves the status of a driver."""
    opened: list[Endpoint] = []

    def served(app: str, pid: int, run: str = "") -> Path:
        folder = state_folder() / "drivers"
        folder.mkdir(mode=0o700, exist_ok=True)
        status: dict[str, Any] = {"app": app, "run": run, "pid": pid, "frozen": False, "controllers": []}
        opened.append(Endpoint(folder / f"driver-{pid}.sock", {"status": lambda _: status}))
        return opened[-1].path

    yield served
    for endpoint in opened:
        endpoint.close()


def test_it_is_found_by_each_of_its_names(serve: Serve) -> None:
    serve("counts", 11)
    path = serve("clicks", 12, "blue")
    for name in ("clicks", "12", "blue", str(path)):
        engine, status = find_driver(name)
        assert (engine.path, status["pid"]) == (path, 12)
        engine.close()


def test_the_only_one_needs_no_name(serve: Serve) -> None:
    with pytest.raises(BadInput, match=r"no driver answers on this machine: start a query with barograph\.start"):
        find_driver(None)
    serve("counts", 11)
    assert find_driver(None)[1]["app"] == "counts"


def test_one_that_is_not_there_and_one_of_several(serve: Serve) -> None:
    serve("counts", 11)
    with pytest.raises(BadInput, match=r"no driver is named 'clicks': name one of counts \(process 11\)"):
        find_driver("clicks")
    serve("counts", 12)
    with pytest.raises(BadInput, match=r"2 drivers run: name one of counts \(process 11\), counts \(process 12\)"):
        find_driver(None)
    with pytest.raises(BadInput, match="2 drivers are named 'counts': name one of"):
        find_driver("counts")


def test_the_socket_of_a_driver_that_has_ended(tmp_path: Path) -> None:
    gone = tmp_path / "driver-1.sock"
    os.mknod(gone, 0o140600)  # a socket that nothing listens at
    with pytest.raises(BadInput, match=r"no driver answers at .* it has ended"):
        find_driver(str(gone))
