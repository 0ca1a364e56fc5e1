"""What the engine remembers is bounded and up to date: epochs, topologies in their order, rows read and rows out."""

import pytest
from tests.engines.spark.bridge.messages import epochs, layouts, life, message

from barograph.engines.spark.bridge.telemetry import EPOCHS_KEPT, FEWEST_EPOCHS_KEPT, SEATS_KEPT, Telemetry
from barograph.model import Instance


@pytest.mark.parametrize(
    ("instances", "kept"),
    [(7, EPOCHS_KEPT), (200, SEATS_KEPT // 200), (SEATS_KEPT, FEWEST_EPOCHS_KEPT)],
)
def test_old_epochs_are_forgotten(instances: int, kept: int) -> None:
    telemetry = Telemetry()
    seats = [("split", i, "0") for i in range(instances)]
    for number in range(kept + 3):
        telemetry.take(message(epochs(("many", "run", number, 1000 + number, seats))))
    remembered = [number for _, number in telemetry.epochs["many"]]
    assert remembered == list(range(3, kept + 3))
    assert all(len(e.seated) == instances for e in telemetry.epochs["many"].values())


def started(**planned_ms: int) -> tuple[Telemetry, list[str]]:
    names = sorted(planned_ms)
    telemetry = Telemetry()
    columns = {
        **layouts(*((i, name, {"s": 1}, (), [100 + i]) for i, name in enumerate(names))),
        **epochs(*((name, "run", 1, planned_ms[name], [("s", 0, "0")]) for name in names)),
    }
    telemetry.take(
        message({**columns, "topology": [*range(len(names))], "present": [1] * len(names), "read": [0] * len(names)})
    )
    return telemetry, names


ODD = ("my query", "a/b", "a=b", "a,b", "a@b", "über/", "tab\t")


def test_a_query_may_have_any_name() -> None:
    telemetry, _ = started(**dict.fromkeys(ODD, 1000))
    assert set(telemetry.topologies) == set(ODD)
    for name in ODD:
        present = telemetry.present(name)
        assert present is not None and list(present.seated) == [Instance(name, "s", 0)]


def test_a_topology_that_cannot_be_read_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    sound = layouts((0, "sound", {"s": 1}, (), [1]), (1, "twice", {"s": 1, "again": 1}, (), [2, 3]))
    columns = {**sound, "operator_name": ["s", "s", "s"], "topology": [0, 1], "present": [1, 1], "read": [0, 0, 0]}
    telemetry = Telemetry()
    for _ in range(3):
        telemetry.take(message(columns))
    assert list(telemetry.topologies) == ["sound"]
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == 1 and warnings[0].startswith("the query 'twice' is not steered: ")


@pytest.mark.parametrize(("query", "operator"), [("odd", "a\u00a0b"), ("", "s")], ids=["operator", "query"])
def test_an_operator_that_cannot_be_named_does_not_affect_others(
    query: str, operator: str, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = Telemetry()
    now = {"topology": [0, 1], "present": [1, 1]}
    shapes = layouts((0, query, {operator: 1}, (), [1]), (1, "sound", {"s": 1}, (), [2]))
    seats = [(query, operator), ("sound", "s")]
    for cursor in (1, 2, 3):
        planned = epochs(*((name, "run", cursor, 1000 + cursor, [(o, 0, "0")]) for name, o in seats))
        telemetry.take(message({**shapes, **planned, **now, "read": [0, 0], "cursor": [cursor]}))
        odd, sound = (life(name, "run", cursor, o, 0) for name, o in seats)
        both = {column: [*odd[column], *sound[column]] for column in odd}
        telemetry.take(message({**both, **now, "read": [7, 5], "cursor": [cursor]}))
        assert telemetry.cursor == cursor
        present = telemetry.present("sound")
        assert present is not None and present.epoch == cursor and present.is_up
        assert present.lives[Instance("sound", "s", 0)].rows_read == 5
    assert list(telemetry.topologies) == ["sound"] and telemetry.present(query) is None
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == 1 and warnings[0].startswith(f"the query {query!r} is not steered: ")


def test_a_query_that_is_restarted_with_a_name_that_cannot_be_read_does_not_affect_others() -> None:
    telemetry, _ = started(sound=1000, t=1000)
    now = {"topology": [0, 1], "present": [1, 1]}
    telemetry.take(message({**life("t", "run", 1, "s", 0), **now, "read": [0, 1]}))
    changed = layouts((1, "t", {"a\u00a0b": 1}, (), [102]))
    for planned in ({}, epochs(("t", "next", 2, 2000, [("a\u00a0b", 0, "0")]))):
        telemetry.take(message({**changed, **planned, **now, "read": [0, 2 + len(planned)]}))
        assert list(telemetry.topologies) == ["sound"]
    telemetry.take(message({**layouts((1, "t", {"s": 1}, (), [103])), **now, "read": [0, 0]}))
    assert list(telemetry.topologies) == ["sound", "t"]
    assert telemetry.present("t") is None, "its present epoch is not known"


def test_topologies_are_in_order_of_submission() -> None:
    telemetry, _ = started(late=3000, early=1000)
    assert list(telemetry.topologies) == ["early", "late"]
    more = {**layouts((2, "a", {"s": 1}, (), [102])), **epochs(("a", "run", 1, 9000, [("s", 0, "0")]))}
    telemetry.take(message({**more, "topology": [0, 1, 2], "present": [1, 1, 1], "read": [0, 0, 0]}))
    assert list(telemetry.topologies) == ["early", "late", "a"], "not by name: a came last"
    telemetry.take(message({"topology": [0, 1, 2], "present": [0, 1, 1], "read": [0, 0, 0]}))
    assert list(telemetry.topologies) == ["late", "a"]
    assert list(telemetry.known) == ["early", "late", "a"]
    telemetry.take(message({"topology": [0, 1, 2], "present": [1, 1, 1], "read": [0, 0, 0]}))
    assert list(telemetry.topologies) == ["early", "late", "a"], "a topology that is restarted keeps its place"


def test_the_present_epoch_is_the_one_that_was_planned_last_also_if_the_clock_was_set_back() -> None:
    """A restarted query would not be seen to be up until the clock has caught up."""
    telemetry, _ = started(t=3_600_000)
    now = {"topology": [0], "present": [1], "read": [0]}
    for run, number, planned_ms in (("run", 2, 1000), ("next", 2, 900)):
        telemetry.take(message({**epochs(("t", run, number, planned_ms, [("s", 0, "0")])), **now}))
        present = telemetry.present("t")
        assert present is not None and (present.run, present.epoch) == (run, number)


def test_a_message_with_numbers_only_changes_no_version() -> None:
    telemetry, _ = started(t=1000)
    before = telemetry.version
    telemetry.take(message({"cursor": [7], "topology": [0], "present": [1], "read": [5]}))
    assert (telemetry.version, telemetry.cursor) == (before, 7)
    telemetry.take(message({**life("t", "run", 1, "s", 0), "topology": [0], "present": [1], "read": [5]}))
    assert telemetry.version > before


def test_rows_read_rise_in_the_present_epoch_and_stay_in_earlier_ones() -> None:
    telemetry, _ = started(t=1000)
    source, now = Instance("t", "s", 0), {"topology": [0], "present": [1]}
    telemetry.take(message({**life("t", "run", 1, "s", 0, read=3), **now, "read": [5]}))
    first = telemetry.present("t")
    assert first is not None and first.lives[source].rows_read == 5
    telemetry.take(message({**now, "read": [9]}))
    assert first.lives[source].rows_read == 9
    planned = epochs(("t", "run", 2, 2000, [("s", 0, "0")]))
    telemetry.take(message({**planned, **life("t", "run", 1, "s", 0, ended_ms=1, read=12), **now, "read": [0]}))
    telemetry.take(message({**life("t", "run", 2, "s", 0), **now, "read": [4]}))
    second = telemetry.present("t")
    assert second is not None and second is not first
    assert (first.lives[source].rows_read, second.lives[source].rows_read) == (12, 4)


def test_counts_of_output_are_totals_of_their_centisecond() -> None:
    telemetry, _ = started(t=1000)
    now = {"topology": [0], "present": [1], "read": [0]}
    telemetry.take(message({**now, "output_topology": [0, 0], "output_centisecond": [100, 101], "output_rows": [3, 4]}))
    telemetry.take(message({**now, "output_topology": [0], "output_centisecond": [101], "output_rows": [6]}))
    assert telemetry.output["t"].as_dict() == {100: 3, 101: 6}
    telemetry.begin_here()
    assert telemetry.output == {}
    assert telemetry.present("t") is not None, "what runs is known"
