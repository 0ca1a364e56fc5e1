"""Writers that note how they were made, and are made again."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.submit import noted_writers
from barograph.submit.noted_writers import WriterCall, note_calls, notes_of, remade


class JavaWriter:
    """Takes the calls that pyspark's writer makes. made: name and arguments of each."""

    def __init__(self) -> None:
        self.made: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> "JavaWriter":
            self.made.append((name, given))
            return self

        return call


class FakeFrame:
    def __init__(self) -> None:
        self.sparkSession = None

    @property
    def _jdf(self) -> "FakeFrame":
        return self

    def writeStream(self) -> JavaWriter:  # noqa: N802  # Spark's name
        return JavaWriter()


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[DataStreamWriter]:
    for name in noted_writers._FLUENT:  # put back after the test
        monkeypatch.setattr(DataStreamWriter, name, getattr(DataStreamWriter, name))
    note_calls()
    yield DataStreamWriter(FakeFrame())  # type: ignore[arg-type]


def test_an_equal_writer_is_made_again_whatever_became_of_the_first(writer: DataStreamWriter) -> None:
    writer.format("console").option("checkpointLocation", "a").outputMode("update").queryName("first")
    notes = notes_of(writer)
    made = list(writer._jwrite.made)
    writer.queryName("second").option("checkpointLocation", "b")
    again = remade(writer, notes)
    assert again._jwrite is not writer._jwrite
    assert again._jwrite.made == made
    assert notes_of(again) == notes


def test_options_are_found_however_they_were_written(writer: DataStreamWriter) -> None:
    assert notes_of(writer).option("checkpointLocation") is None
    writer.option("CHECKPOINTlocation", "a")
    assert notes_of(writer).option("checkpointLocation") == "a"
    writer.options(checkpointLocation="b", other=1)
    assert notes_of(writer).option("checkpointLocation") == "b"
    writer.option(key="checkpointLocation", value="c")
    assert notes_of(writer).option("checkpointLocation") == "c"
    assert notes_of(writer).option("other") == "1"


def test_the_last_trigger_counts(writer: DataStreamWriter) -> None:
    def with_trigger(**named: str) -> bool:
        return noted_writers.WriterNotes((*notes_of(writer).calls, WriterCall("trigger", (), named))).is_real_time

    assert not notes_of(writer).is_real_time
    assert with_trigger(realTime="5 seconds")
    assert not with_trigger(processingTime="5 seconds")


def test_a_call_that_fails_is_not_noted(writer: DataStreamWriter) -> None:
    with pytest.raises(Exception, match="queryName"):
        writer.queryName("")
    assert notes_of(writer).calls == ()
    assert notes_of(writer.queryName("name")).query_name == "name"
