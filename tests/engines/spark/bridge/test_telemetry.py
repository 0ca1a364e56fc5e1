"""What the engine remembers is bounded, by epochs and for large topologies by seats; topologies keep their order."""

from dataclasses import replace

import pytest

from barograph.engines.spark.bridge.reports import OperatorSeen, Seated, TelemetryReport
from barograph.engines.spark.bridge.telemetry import EPOCHS_KEPT, FEWEST_EPOCHS_KEPT, SEATS_KEPT, Telemetry
from barograph.model import Instance


def epoch(number: int, instances: int) -> TelemetryReport:
    seated = tuple(
        Seated("many", "run", number, 1, 1000 + number, "split", i, "0", "", "the plan does not name it")
        for i in range(instances)
    )
    return TelemetryReport((), (), (), seated, (), {})


@pytest.mark.parametrize(
    ("instances", "kept"),
    [(7, EPOCHS_KEPT), (200, SEATS_KEPT // 200), (SEATS_KEPT, FEWEST_EPOCHS_KEPT)],
)
def test_old_epochs_are_forgotten(instances: int, kept: int) -> None:
    telemetry = Telemetry()
    for number in range(kept + 3):
        telemetry.take(epoch(number, instances))
    remembered = [number for _, number in telemetry.epochs["many"]]
    assert remembered == list(range(3, kept + 3))
    assert all(len(e.seated) == instances for e in telemetry.epochs["many"].values())


def started(**planned_ms: int) -> TelemetryReport:
    """Topologies of one operator; when each was planned, 0 if no seat of it is reported."""
    operators = tuple(OperatorSeen(name, 1, "s", 1, True, False, "", False) for name in sorted(planned_ms))
    seated = tuple(Seated(name, "run", 1, 1, at, "s", 0, "0", "", "") for name, at in planned_ms.items() if at)
    return TelemetryReport((), operators, (), seated, (), {})


ODD = ("my query", "a/b", "a=b", "a,b", "a@b", "über/", "tab\t")


def test_a_query_may_have_any_name() -> None:
    telemetry = Telemetry()
    telemetry.take(started(**dict.fromkeys(ODD, 1000)))
    assert set(telemetry.topologies) == set(ODD)
    for name in ODD:
        present = telemetry.present(name)
        assert present is not None and list(present.seated) == [Instance(name, "s", 0)]


def test_a_topology_that_cannot_be_read_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    operator = OperatorSeen("twice", 1, "s", 1, True, False, "", False)
    sound = started(sound=1000)
    report = replace(sound, operators=(*sound.operators, operator, operator))
    telemetry = Telemetry()
    for _ in range(3):
        telemetry.take(report)
    assert list(telemetry.topologies) == ["sound"]
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == 1 and warnings[0].startswith("the query 'twice' is not steered: ")


def test_topologies_are_in_order_of_submission() -> None:
    telemetry = Telemetry()
    telemetry.take(started(late=3000, early=1000))
    assert list(telemetry.topologies) == ["early", "late"]
    telemetry.take(started(late=0, early=0, a=9000))
    assert list(telemetry.topologies) == ["early", "late", "a"], "not by name: a came last"
    telemetry.take(started(late=0, a=0))
    telemetry.take(started(late=0, a=0, early=20_000))
    assert list(telemetry.topologies) == ["early", "late", "a"], "a topology that is restarted keeps its place"
