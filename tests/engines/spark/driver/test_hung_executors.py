"""A hung executor is ended once it is found, and what is not ended is said once."""

import pytest

from barograph.engines.spark.bridge.reports import LastReport
from barograph.engines.spark.driver.hung_executors import HungExecutors


class FakeExecutors:
    """ages: of each executor at the next look."""

    application = "app-1"

    def __init__(self) -> None:
        self.ages = {"1": 0.1, "2": 0.2}
        self.ended: list[tuple[str, str]] = []
        self.now_s = 0.0

    def reports(self) -> dict[str, LastReport]:
        self.now_s += 1.0
        return {executor: LastReport(age_s) for executor, age_s in self.ages.items()}

    def end_silent(self, executor: str, why: str) -> bool:
        self.ended.append((executor, why))
        return True

    def where(self, executor: str) -> str:
        return f"executor {executor} on node-{executor}"


def test_it_is_ended_by_spark_where_there_is_no_embedded_cluster(caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeExecutors()
    watch = HungExecutors(engine, None, 12.0, lambda: engine.now_s)
    watch.judge(engine.reports())
    assert engine.ended == []
    engine.ages = {"1": 12.4, "2": 0.2}
    watch.judge(engine.reports())
    assert engine.ended == [("1", "it has not reported for 12 s")]
    assert "executor 1 on node-1 is ended and replaced" in caplog.text


def test_what_is_spared_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeExecutors()
    watch = HungExecutors(engine, None, 12.0, lambda: engine.now_s)
    engine.ages = {"1": 14.0, "2": 14.0}
    watch.judge(engine.reports())
    watch.judge(engine.reports())
    assert engine.ended == []
    said = [r.getMessage() for r in caplog.records if "is not ended" in r.getMessage()]
    assert said[0].endswith("no executor reports, so the network may be slow; after 18 s they are")
    assert len(said) == 1
