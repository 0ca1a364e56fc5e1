"""How a query run ended is read from the plug-in's answer."""

from barograph.engines.spark.bridge.query_run import EndKind, QueryRunEnd, read_end


def test_answers_of_the_plug_in() -> None:
    assert read_end("") is None
    assert read_end("stopped") == QueryRunEnd(EndKind.STOPPED)
    died = read_end("died: an executor was lost")
    assert died == QueryRunEnd(EndKind.DIED, "an executor was lost") and died.died
