"""Settings with which two drivers could write over each other's state are refused."""

import pytest
from tests.engines.spark.query.fake_engine import FakeEngine, FakeWriter

from barograph.engines.spark.query.start.prepared_start import PreparedStart
from barograph.engines.spark.query.start.state_format import FORMAT_1_ALLOWED, STATE_FORMAT, require_own_state
from barograph.engines.spark.query.start.writer_ahead import WriterAhead
from barograph.model import BadInput


@pytest.mark.parametrize("settings", [{}, {STATE_FORMAT: "2"}, {STATE_FORMAT: "2", FORMAT_1_ALLOWED: "false"}], ids=str)
def test_format_2_is_taken(settings: dict[str, str]) -> None:
    engine = FakeEngine()
    engine.conf |= settings
    require_own_state(FakeWriter(engine, [None]))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({STATE_FORMAT: "1"}, f"{STATE_FORMAT}=1"),
        ({STATE_FORMAT: "1", FORMAT_1_ALLOWED: "true"}, f"{STATE_FORMAT}=1 and {FORMAT_1_ALLOWED}=true"),
        # A checkpoint that is in format 1 would stay so.
        ({STATE_FORMAT: "2", FORMAT_1_ALLOWED: "True"}, f"{FORMAT_1_ALLOWED}=True"),
    ],
    ids=["1", "1, allowed", "allowed"],
)
def test_format_1_is_refused_before_the_query_is_started(settings: dict[str, str], said: str) -> None:
    engine = FakeEngine()
    engine.conf |= settings
    writer = FakeWriter(engine, [None])
    for made in (writer, PreparedStart(writer, lambda w: w.start())):
        with pytest.raises(BadInput) as refused:
            WriterAhead(lambda made=made: made, "/c").take().start()  # type: ignore[misc]
        assert str(refused.value) == (
            f"{said}: in format 1 a driver that was stopped can write over the state of the next one: set "
            f"{STATE_FORMAT}=2 and leave {FORMAT_1_ALLOWED} out"
        )
    assert engine.runs == []
