"""Some hostile inputs of every kind: a value or a sentence. ``make bench ONLY=hostile`` runs a million."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench._hostile_inputs import REQUESTS
from bench.hostile import KINDS, attempt, best, shares

from barograph.engines.spark.driver import supervisor
from barograph.model import BadInput
from bench import _hostile_readers, hostile


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_inputs_give_a_value_or_a_sentence(kind: str) -> None:
    found = attempt(kind, 0, 300)
    assert found.failures == []
    assert found.valid + found.refused == 300
    assert found.refused > 30 and found.valid > 3, "inputs are spoilt, but not all of them beyond recognition"


def test_every_verb_of_a_driver_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A verb that is served and not among the inputs would never see a hostile one."""
    served: list[set[str]] = []

    def endpoint(_path: Path, verbs: Mapping[str, object]) -> SimpleNamespace:
        served.append(set(verbs))
        return SimpleNamespace(close=lambda: None)

    driver: Any = SimpleNamespace(
        endpoint=None, folder=lambda: tmp_path, engine=SimpleNamespace(pace=SimpleNamespace(want=None)),
        change_signal=SimpleNamespace(verb=None), controllers=SimpleNamespace(verb=None), _freeze=None, _nodes=None,
    )  # fmt: skip
    monkeypatch.setattr(supervisor, "Endpoint", endpoint)
    supervisor.Supervisor.serve(driver, {"priority": lambda _: None})
    assert {request["verb"] for request in REQUESTS} == served[0]
    monkeypatch.setattr(_hostile_readers, "Endpoint", endpoint)
    with ExitStack() as stack:
        _hostile_readers.readers(tmp_path, stack)
    assert served[1] == served[0]


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


@contextmanager
def limits(monkeypatch: pytest.MonkeyPatch, hang_s: float = 10.0) -> Iterator[None]:
    """Shorter ones, and what the bench does when a wall clock ends an input. Not a fixture: the limit of time that each
    test has uses the same alarm, and sets it anew before the test's own code."""
    monkeypatch.setattr(hostile, "LONGEST_S", 0.05)
    monkeypatch.setattr(hostile, "HANG_S", hang_s)
    before = signal.signal(signal.SIGALRM, hostile._hangs)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


def work(seconds: float) -> None:
    """Use so much CPU in this thread."""
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        pass


def in_a_thread(_: bytes) -> None:
    thread = threading.Thread(target=work, args=(0.08,))
    thread.start()
    thread.join()


def test_the_best_time_of_a_slow_input_counts_and_no_quicker_try_takes_a_failure_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bytes] = []

    def slow_first(content: bytes) -> None:
        asked.append(content)
        if len(asked) < 3:
            work(0.08)

    with limits(monkeypatch):
        found = best(slow_first, b"x")
    assert len(asked) == 3 and found.took_s < 0.05 and found.valid

    asked.clear()

    def slow_always(content: bytes) -> None:
        asked.append(content)
        work(0.06)

    with limits(monkeypatch):
        assert best(slow_always, b"x").took_s > 0.05 and len(asked) == 4

    asked.clear()

    def fails_first(content: bytes) -> None:
        asked.append(content)
        if len(asked) == 1:
            work(0.08)
            raise KeyError("x")

    with limits(monkeypatch):
        assert "KeyError" in (best(fails_first, b"x").failure or "")


def test_all_time_counts_but_waiting_for_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bytes] = []

    def waits(content: bytes) -> None:
        tried.append(content)
        time.sleep(0.1)

    with limits(monkeypatch):
        assert best(in_a_thread, b"x").took_s > 0.05
        assert best(waits, b"x").took_s > 0.05 and len(tried) == 4
        # As on a machine with other work: of the second try all was waiting for a core.
        tried.clear()
        monkeypatch.setattr(hostile, "_waited_for_a_core_s", lambda: 0.1 * len(tried))
        assert best(waits, b"x").took_s < 0.05 and len(tried) == 2


def test_the_kernel_tells_how_long_threads_wait_for_a_core() -> None:
    """More threads than cores, in a process of its own, so that Python's own lock is not what they wait for."""
    code = """
import os, time
from bench.hostile import _waited_for_a_core_s
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for _ in range(3):
    os.fork()
end = time.monotonic() + 0.2
while time.monotonic() < end:
    pass
os.write(1, f"{_waited_for_a_core_s()}\\n".encode())  # each line whole
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert max(map(float, told.split())) > 0.05


def test_an_input_that_takes_too_much_cpu_misses_the_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow_readers(*_: object) -> dict[str, object]:
        return {"load": (lambda _: b"x", in_a_thread)}

    monkeypatch.setattr(hostile, "LONGEST_S", 0.05)
    monkeypatch.setattr(hostile, "readers", slow_readers)
    found = attempt("load", 7, 1)
    assert found.longest_s > 0.05 and found.longest_seed == 7
    assert hostile.judged([found], 1) == 1
    assert '"longest_s"' in capsys.readouterr().out


def test_an_input_that_hangs_once_is_no_failure_and_one_that_hangs_always_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def once(content: bytes) -> None:
        asked.append(content)
        if len(asked) == 1:
            time.sleep(5)

    with limits(monkeypatch, hang_s=0.3):
        assert best(once, b"x").failure is None
        assert "longer than" in (best(lambda _: time.sleep(5), b"x").failure or "")


def test_a_hang_that_the_product_takes_for_a_refusal_is_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: bytes) -> None:
        try:
            time.sleep(5)
        except Exception as error:
            raise BadInput("the connection was closed") from error

    with limits(monkeypatch, hang_s=0.3):
        assert "longer than" in (best(refuses, b"x").failure or "")
