"""One supervised query of a driver at a time has a checkpoint, however that is written."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.engines.spark.query.fake_engine import FakeEngine, FakeWriter, died
from tests.polling import until

from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.engines.spark.query.start.checkpoint_claims import CheckpointClaims, asked_for, one_name_of
from barograph.engines.spark.query.start.prepared_start import PreparedStart
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.model import BadInput


class Driver:
    def __init__(self, qualified: Callable[[str], str] = lambda place: place) -> None:
        self.engine, self.used, self.bound = FakeEngine(), set[str](), list[tuple[object, ...]]()
        self.supervisor: Any = SimpleNamespace(
            engine=self.engine, _claims=CheckpointClaims(qualified, self.used.__contains__), _queries={},
            _lock=threading.Lock(), bounds=SimpleNamespace(bound=lambda *bound: self.bound.append(bound)),
        )  # fmt: skip

    def writer(self, checkpoint: object = None, error: Exception | None = None) -> FakeWriter:
        made = FakeWriter(self.engine, [error])
        return made if checkpoint is None else made.option("checkpointLocation", checkpoint)

    def start(self, build: Callable[[], DataStreamWriter | PreparedStart], checkpoint: str | None = None) -> Supervised:
        return Supervisor.start(self.supervisor, build, checkpoint)


def test_a_second_query_on_a_checkpoint_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").symlink_to("here")
    driver, place = Driver(), str(tmp_path / "here")
    first = driver.start(lambda: driver.writer(place))
    assert first.await_up(10.0)
    for same in (place, f"{place}/", f"file:{place}", f"file://{place}//", str(tmp_path / "there"), f"{place}/../here"):
        with pytest.raises(BadInput) as refused:
            driver.start(lambda same=same: driver.writer(same))  # type: ignore[misc]
        assert str(refused.value) == (
            f"the checkpoint {same} is in use by the query counting of this driver: stop that query first, or use "
            "another checkpoint"
        )
    with pytest.raises(BadInput, match="is in use by the query counting"):
        driver.start(driver.writer, place)
    (run,) = driver.engine.runs
    assert run.isActive and first.isActive, "the first goes on"
    first.stop()
    last = driver.start(lambda: driver.writer(f"{place}/"))
    assert last.await_up(10.0)
    last.stop()
    assert [kept for _, kept in driver.engine.leases] == [True, False, True, False]


def test_it_is_known_whether_a_query_was_started_on_the_checkpoint_before() -> None:
    driver = Driver()
    for on_used in (False, True):
        driver.start(lambda: driver.writer("/c")).stop()
        assert driver.bound[-1] == ("counting", None, on_used)
        driver.used.add("/c")


def test_a_query_that_could_not_be_declared_is_stopped_with_its_driver() -> None:
    driver = Driver()

    def declare(*_: object) -> None:
        raise KeyboardInterrupt

    driver.engine.declare = declare  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        Supervisor.start(driver.supervisor, lambda: driver.writer("/c"), options=QueryOptions())
    (query,) = driver.supervisor._queries.values()
    assert query.isActive
    query.stop()


def test_a_query_between_two_runs_still_has_its_checkpoint() -> None:
    driver, going = Driver(), threading.Event()

    def build() -> FakeWriter:
        if driver.engine.runs:
            assert going.wait(30.0)
        return driver.writer("/c")

    first = driver.start(build)
    assert first.await_up(10.0)
    driver.engine.runs[0].end_with(died("java.net.ConnectException: refused"))
    until(lambda: first.doing != "running")
    with pytest.raises(BadInput, match="is in use by the query counting"):
        driver.start(lambda: driver.writer("/c"))
    assert len(driver.engine.runs) == 1
    going.set()
    until(lambda: len(driver.engine.runs) == 2)
    first.stop()


def test_one_that_did_not_start_has_none() -> None:
    driver = Driver()
    with pytest.raises(ValueError, match="not today"):
        driver.start(lambda: driver.writer("/c", ValueError("not today")))
    driver.start(lambda: driver.writer("/c")).stop()


def test_of_two_that_start_at_once_one_is_refused() -> None:
    driver = Driver()
    inner: list[str] = []

    class Starting(FakeWriter):
        def start(self, *_args: object, **_options: object) -> Any:
            with pytest.raises(BadInput) as refused:
                driver.start(lambda: driver.writer("/c"))
            inner.append(str(refused.value))
            return super().start()

    driver.start(lambda: Starting(driver.engine, [None]).option("checkpointLocation", "/c")).stop()
    assert inner == [
        "the checkpoint /c is in use by another query of this driver: stop that query first, or use another checkpoint"
    ]


def test_a_folder_is_known_by_its_file_system_too() -> None:
    """A plain path may be one of the cluster's file system. One that does not answer refuses nothing."""
    driver = Driver(lambda place: place if ":" in place else f"hdfs://names:8020{place}")
    first = driver.start(lambda: driver.writer("/c"))
    with pytest.raises(BadInput, match="is in use"):
        driver.start(lambda: driver.writer("hdfs://names:8020/c/"))
    driver.start(lambda: driver.writer("hdfs://others:8020/c")).stop()
    first.stop()

    def away(_place: str) -> str:
        raise ConnectionError("the file system is away")

    driver = Driver(away)
    first = driver.start(lambda: driver.writer("s3a://bucket/c"))
    with pytest.raises(BadInput, match="is in use"):
        driver.start(lambda: driver.writer("s3a://bucket/c/"))
    first.stop()


def test_the_checkpoint_of_a_start_is_found_where_spark_looks_for_it() -> None:
    driver = Driver()
    plain, named = driver.writer(), driver.writer().option("queryName", "words")
    assert asked_for(plain, None) is None and asked_for(named, None) is None
    assert asked_for(plain, "/given") == "/given"
    assert asked_for(driver.writer("/own"), None) == "/own"
    driver.engine.conf["spark.sql.streaming.checkpointLocation"] = "/all/"
    assert asked_for(named, None) == "/all/words" and asked_for(plain, None) is None, "a folder by chance"
    begin = cast(Any, None)
    assert asked_for(PreparedStart(plain, begin, {"queryName": "lines", "format": None}), None) == "/all/lines"
    assert asked_for(PreparedStart(driver.writer("/own"), begin, {"checkpointlocation": "/start"}), None) == "/start"
    plain._jwrite = cast(Any, object())  # another version of Spark
    assert asked_for(plain, None) is None


def test_names_of_folders() -> None:
    assert one_name_of("file:///a//b/") == one_name_of("/a/b") == one_name_of("file:/a/./b") == "file:/a/b"
    assert one_name_of("hdfs://n/a/") == "hdfs://n/a" != one_name_of("/a")
