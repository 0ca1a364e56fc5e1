"""Each observer has its own baseline, and there are not too many of them."""

import pytest

from barograph.engines.spark.bridge.baselines import (
    FORGOTTEN_S,
    LONGEST_NAME,
    MOST_MARKS,
    MOST_OBSERVERS,
    Baselines,
    observer_in,
)
from barograph.engines.spark.bridge.running_totals import RunningTotals
from barograph.model import BadInput, Node, Snapshot


def at(second: float) -> RunningTotals:
    return RunningTotals(second)


def seen(second: float) -> Snapshot:
    return Snapshot(second, 1.0, (Node("n", 100.0),), ())


def looked(baselines: Baselines, observer: str, second: float) -> RunningTotals:
    """Returns from where the look counted."""
    before = baselines.before(observer, second)
    baselines.looked(observer, at(second), seen(second))
    return before


def test_each_counts_from_its_own_last_look() -> None:
    baselines = Baselines(at(0.0))
    assert looked(baselines, "controller", 10.0).at_s == 0.0
    assert looked(baselines, "status", 12.0).at_s == 10.0, "a new one begins where another looked a moment ago"
    assert looked(baselines, "controller", 20.0).at_s == 10.0
    assert looked(baselines, "status", 21.0).at_s == 12.0
    last = baselines.last("controller")
    assert last is not None and last.at_s == 20.0
    assert baselines.last("another") is None


def test_a_rate_is_taken_from_a_moment_that_is_long_enough_ago() -> None:
    baselines = Baselines(at(0.0))
    for second in (10.0, 11.0, 11.5, 12.0, 12.5):
        looked(baselines, "controller", second)
    assert baselines.recent(13.0, 2.0).at_s == 11.0
    assert baselines.recent(13.0, 100.0).at_s == 0.0, "the oldest that is known"
    for second in range(20, 100):
        looked(baselines, "controller", float(second))
    assert baselines.recent(99.0, 1000.0).at_s == 100 - MOST_MARKS


def test_observers_are_bounded_in_number_and_time() -> None:
    baselines = Baselines(at(0.0))
    for number in range(MOST_OBSERVERS + 10):
        looked(baselines, f"client {number}", 10.0 + number)
    assert len(baselines) == MOST_OBSERVERS
    looked(baselines, "controller", 100.0 + FORGOTTEN_S)
    assert len(baselines) == 1
    for second in range(3):
        looked(baselines, "controller", 101.0 + FORGOTTEN_S + second)
    assert looked(baselines, "client 70", 200.0 + FORGOTTEN_S).at_s == 103.0 + FORGOTTEN_S, "it begins anew"


@pytest.mark.parametrize("name", ["", "x" * (LONGEST_NAME + 1), 7, None, ["controller"]])
def test_a_name_is_text_of_some_length(name: object) -> None:
    with pytest.raises(BadInput, match="the name of an observer must be text"):
        Baselines(at(0.0)).before(name, 1.0)  # type: ignore[arg-type]  # as a client may send it


def test_a_request_names_its_observer() -> None:
    assert observer_in({"observer": "page"}) == observer_in("page") == "page"
    for request in (None, {}, {"observer": None}, {"name": "page"}):
        with pytest.raises(BadInput, match="the name of an observer must be text"):
            observer_in(request)
