"""Which queries of a program are kept, and what is said of the others."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.submit.fake_queries import FakeQuery

from barograph.engines.spark.query.start.prepared_start import PreparedStart, starting_a_run
from barograph.submit.kept_starts import NO_CHECKPOINT, NOT_REAL_TIME, keep_starts
from barograph.submit.noted_writers import WriterCall
from barograph.submit.own_queries import OwnQueries

REAL_TIME = WriterCall("trigger", (), {"realTime": "5 seconds"})
CHECKPOINT = WriterCall("option", ("checkpointLocation", "folder"))


class Program:
    """kept: the checkpoints of starts that were kept. begun: arguments of starts by Spark. said: to the user."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, default_folder: str | None = None) -> None:
        self.kept: list[str | None] = []
        self.begun: list[tuple[Any, ...]] = []
        self.said: list[str] = []
        self.sessions: list[object] = []
        self.queries = OwnQueries()
        self.fails: Exception | None = None
        self._folder = default_folder

        def begin(_: DataStreamWriter, *positional: Any, **named: Any) -> FakeQuery:
            self.begun.append((*positional, *named.items()))
            return FakeQuery()

        monkeypatch.setattr(DataStreamWriter, "start", begin)
        monkeypatch.setattr(DataStreamWriter, "toTable", begin)
        monkeypatch.setattr("barograph.submit.kept_starts.remade", lambda writer, _: writer)
        keep_starts(self._keep, self.queries, self.said.append)

    def _keep(self, build: Callable[[], Any], checkpoint: str | None, session: object) -> Any:
        self.sessions.append(session)
        prepared = build()
        assert isinstance(prepared, PreparedStart)
        with starting_a_run():
            query = prepared.start()
        if self.fails is not None:
            raise self.fails
        self.kept.append(checkpoint)
        return query

    def writer(self, *calls: WriterCall) -> DataStreamWriter:
        made = object.__new__(DataStreamWriter)
        made._spark = SimpleNamespace(conf=SimpleNamespace(get=lambda *_: self._folder))  # type: ignore[assignment]
        made.__dict__["_barograph_calls"] = list(calls)
        return made


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(monkeypatch)


def test_a_real_time_query_with_a_checkpoint_is_kept(program: Program) -> None:
    writer = program.writer(REAL_TIME, CHECKPOINT)
    query = writer.start("path", format="console")
    assert program.sessions == [writer._spark], "which may be active in no thread"
    assert (program.kept, program.begun, program.said) == ([None], [("path", ("format", "console"))], [])
    assert program.queries.kept() == {"q": query}
    program.writer(REAL_TIME).toTable("table", CheckpointLocation="folder")
    assert len(program.kept) == 2


@pytest.mark.parametrize(
    ("calls", "why"), [((CHECKPOINT,), NOT_REAL_TIME), ((REAL_TIME,), NO_CHECKPOINT), ((), NOT_REAL_TIME)]
)
def test_any_other_query_runs_as_spark_runs_it_and_one_line_says_why(
    calls: tuple[WriterCall, ...], why: str, program: Program
) -> None:
    program.writer(*calls).start()
    program.writer(*calls, WriterCall("queryName", ("first",))).start(queryName="counts")
    assert program.said == [f"a query is not kept: {why}", f"the query counts is not kept: {why}"]
    assert (program.kept, len(program.begun)) == ([], 2)
    assert program.queries.kept() == {}


def test_a_folder_for_all_checkpoints_is_one_for_each_query(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, "all/")
    program.writer(REAL_TIME).start()
    program.writer(REAL_TIME, WriterCall("queryName", ("counts",))).start()
    program.writer(REAL_TIME, CHECKPOINT).start()
    unnamed, named, own = program.kept
    assert unnamed is not None and unnamed.startswith("all/") and len(unnamed) > len("all/") + 30
    assert (named, own) == ("all/counts", None)


def test_a_start_within_a_start_is_a_run_of_a_kept_query(program: Program) -> None:
    """A program that calls barograph.start itself has its own supervision."""
    with starting_a_run():
        program.writer(REAL_TIME, CHECKPOINT).start()
    assert (program.kept, program.said) == ([], [])


def test_a_start_that_is_refused_leaves_nothing_behind(program: Program) -> None:
    program.fails = ValueError("refused")
    with pytest.raises(ValueError, match="refused"):
        program.writer(REAL_TIME, CHECKPOINT).start()
    assert not program.queries.is_kept("q")
