"""Some hostile inputs of every kind: a value or a sentence. ``make bench ONLY=hostile`` runs a million."""

import signal
import time

import pytest
from bench.hostile import KINDS, attempt, best, shares

from bench import hostile


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_inputs_give_a_value_or_a_sentence(kind: str) -> None:
    found = attempt(kind, 0, 300)
    assert found.failures == []
    assert found.valid + found.refused == 300
    assert found.refused > 30 and found.valid > 3, "inputs are spoilt, but not all of them beyond recognition"


def test_a_bench_that_was_ended_early_misses_its_bars(capsys: pytest.CaptureFixture[str]) -> None:
    whole = [hostile.Tally("load", 0, 5, valid=5), hostile.Tally("plan", 0, 5, refused=5)]
    assert hostile.judged(whole, 10) == 0
    assert hostile.judged(whole[:1], 10) == 1
    assert hostile.judged([*whole[:1], hostile.Tally("plan", 0, 5, failures=[(3, "KeyError")])], 10) == 1
    assert hostile.judged([*whole[:1], hostile.Tally("plan", 0, 5, longest_s=1.1)], 10) == 1
    assert hostile.judged([], 10) == 1
    assert '"inputs": 5' in capsys.readouterr().out


def test_every_kind_gets_a_tenth() -> None:
    found = shares(1_000_000)
    assert sum(found.values()) == 1_000_000 and min(found.values()) == 100_000


def test_the_best_time_of_a_slow_input_counts_and_no_quicker_try_takes_a_failure_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hostile, "LONGEST_S", 0.05)
    asked: list[bytes] = []

    def slow_first(content: bytes) -> None:
        asked.append(content)
        if len(asked) < 3:
            time.sleep(0.1)

    found = best(slow_first, b"x")
    assert len(asked) == 3 and found.took_s < 0.05 and found.valid

    asked.clear()

    def slow_always(content: bytes) -> None:
        asked.append(content)
        time.sleep(0.06)

    assert best(slow_always, b"x").took_s > 0.05 and len(asked) == 4

    asked.clear()

    def fails_first(content: bytes) -> None:
        asked.append(content)
        if len(asked) == 1:
            time.sleep(0.1)
            raise KeyError("x")

    assert "KeyError" in (best(fails_first, b"x").failure or "")


def test_an_input_that_hangs_once_is_no_failure_and_one_that_hangs_always_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "LONGEST_S", 0.05)
    monkeypatch.setattr(hostile, "HANG_S", 0.2)
    before = signal.signal(signal.SIGALRM, hostile._hangs)
    try:
        asked: list[bytes] = []

        def once(content: bytes) -> None:
            asked.append(content)
            if len(asked) == 1:
                time.sleep(5)

        assert best(once, b"x").failure is None
        assert "longer than" in (best(lambda _: time.sleep(5), b"x").failure or "")
    finally:
        signal.signal(signal.SIGALRM, before)
