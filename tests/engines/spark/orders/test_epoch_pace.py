"""Epoch lengths, source gates and the change signal: small classes between a controller and the plug-in."""

import threading
from collections.abc import Iterable, Mapping

import pytest

from barograph.engines.spark.driver.change_signal import ChangeSignal
from barograph.engines.spark.orders.epoch_pace import EpochPace
from barograph.engines.spark.orders.source_gates import SourceGates
from barograph.model import BadInput


def test_lengths_are_sent_when_they_change_and_kept_while_held() -> None:
    sent: list[Mapping[str, int]] = []
    pace = EpochPace(sent.append)
    pace.want({"a": 5})
    pace.want({"a": 5.0})
    pace.want({"b": 7.5})
    assert sent == [{"a": 5000}, {"a": 5000, "b": 7500}]
    pace.hold(True)
    pace.want({"a": 20})
    assert len(sent) == 2 and pace.wanted_s == {"a": 20.0, "b": 7.5}
    pace.hold(False)
    assert sent[2:] == [{"a": 20000, "b": 7500}]


WRONG = {
    "no object": ([1], "must be an object"),
    "too short": ({"a": 0.5}, "must last 1 to 86400 seconds, not 0.5"),
    "no number": ({"a": "5"}, "not '5'"),
    "truth": ({"a": True}, "not True"),
    "not a number": ({"a": float("nan")}, "not nan"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_request_changes_nothing(case: str) -> None:
    sent: list[Mapping[str, int]] = []
    pace = EpochPace(sent.append)
    body, sentence = WRONG[case]
    with pytest.raises(BadInput, match="pace: ") as caught:
        pace.want(body)
    assert sentence in str(caught.value) and sent == [] and pace.wanted_s == {}


def test_pausing_and_resting_do_not_undo_each_other() -> None:
    sent: list[list[str]] = []

    def send(names: Iterable[str]) -> None:
        sent.append(list(names))

    gates = SourceGates(send)
    gates.pause("a")
    gates.pause("a")
    assert gates.rest(["a", "b"]) == ["the sources of a rest", "the sources of b rest"]
    gates.pause("a", False)
    assert sent == [["a"], ["a", "b"]], "a rests by plan although it is no longer paused"
    assert gates.rest([]) == ["the sources of a read again", "the sources of b read again"]
    assert sent[2:] == [[]]
    assert gates.rest([]) == [] and len(sent) == 3


def test_what_could_not_be_sent_is_sent_again() -> None:
    tries: list[list[str]] = []

    def send(names: Iterable[str]) -> None:
        tries.append(list(names))
        if len(tries) == 1:
            raise OSError("gone")

    gates = SourceGates(send)
    with pytest.raises(OSError):
        gates.pause("a")
    assert gates.paused == frozenset()
    gates.pause("a")
    assert tries == [["a"], ["a"]] and gates.paused == {"a"}


def test_a_change_signal_wakes_a_waiting_request() -> None:
    change_signal = ChangeSignal()
    assert change_signal.verb({"seen": -1, "seconds": 0}) == 0
    assert change_signal.verb({"seen": 0, "seconds": 0.01}) == 0
    found: list[int] = []
    waiter = threading.Thread(target=lambda: found.append(change_signal.verb({"seen": 0, "seconds": 10})))
    waiter.start()
    change_signal.raise_signal()
    waiter.join(5.0)
    assert found == [1]
    bodies: tuple[object, ...] = ([], {"seen": "x", "seconds": 1}, {"seen": 1})
    for body in bodies:
        with pytest.raises(BadInput, match="news: "):
            change_signal.verb(body)
