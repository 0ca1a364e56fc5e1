"""The file that --config names replaces barograph.toml wherever options are read, also in a driver that is started."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barograph.config import OPTIONS, resolve
from barograph.config.sources import FILE_VARIABLE, handed_on
from barograph.engines.spark.driver import supervisor
from barograph.engines.spark.executors.chosen import executors_of
from barograph.engines.spark.executors.port import ExecutorRequests
from barograph.engines.spark.executors.requested import RequestedExecutors


@pytest.fixture(autouse=True)
def two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("barograph.toml").write_text('timeout = "1s"\n[executors]\nleast = 4\nmost = 6\n', encoding="utf-8")
    Path("other.toml").write_text('timeout = "7s"\n[executors]\nleast = 2\n', encoding="utf-8")


def bounds() -> tuple[int, int | None]:
    found = executors_of(cast(ExecutorRequests, None), {"spark.master": "yarn"}, None, "app", lambda: 1)
    assert isinstance(found, RequestedExecutors)
    return found.bounds.least, found.bounds.most


def test_executors_are_bounded_by_the_file_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bounds() == (4, 6)
    with handed_on(Path("other.toml")):
        assert bounds() == (2, None)
        monkeypatch.chdir("/")
        assert bounds() == (2, None), "wherever the program is"
    assert FILE_VARIABLE not in os.environ


def test_a_file_that_is_named_in_the_call_wins() -> None:
    with handed_on(Path("other.toml")):
        assert resolve(Path("barograph.toml"))["executors.least"] == 4
        with handed_on(None):
            assert resolve()["executors.least"] == 2


def test_rows_of_any_query_are_late_by_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of a driver gets it: also of one that runs a program of a user."""

    class Made(Exception):  # noqa: N818  # ends the supervisor's start
        pass

    def made(*_: object, timeout_s: float) -> Any:
        raise Made(timeout_s)

    def timeout_s(conf: dict[str, str]) -> float:
        context = SimpleNamespace(
            master="local[2]", appName="app", getConf=lambda: SimpleNamespace(getAll=lambda: list(conf.items()))
        )
        with pytest.raises(Made) as found:
            supervisor.Supervisor(cast(Any, SimpleNamespace(sparkContext=context)))
        return float(found.value.args[0])

    monkeypatch.setattr(supervisor, "SparkEngine", made)
    assert timeout_s({}) == 1.0
    with handed_on(Path("other.toml")):
        assert timeout_s({}) == 7.0
        assert timeout_s({OPTIONS["timeout"].key_name: "500ms"}) == 0.5
