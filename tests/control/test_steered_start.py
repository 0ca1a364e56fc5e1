"""Which queries have their epochs bounded by the recovery target: all but those under a policy that only advises; and
queries that are started at the same time share one controller."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barograph.config import resolve
from barograph.control import steered_start
from barograph.engines.epoch_length import Recovery
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.model import BadInput

BOUNDS: dict[str, tuple[dict[str, object], float | None]] = {
    "without a policy": ({}, 30.0),
    "a policy that acts": ({"policy": "adaptive", "mode": "act"}, 30.0),
    "a policy that advises": ({"policy": "adaptive", "mode": "advise"}, None),
    "a policy that advises, and a target": ({"policy": "adaptive", "mode": "advise", "recovery": "20s"}, 20.0),
    "no target": ({"recovery": "off"}, None),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_epochs_are_bounded_unless_a_policy_only_advises(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options, target_s = BOUNDS[case]
    monkeypatch.setattr(steered_start, "attach_once", lambda *_: SimpleNamespace(close=lambda: None))
    given: list[Recovery | None] = []

    def start(*_: Any, recovery: Recovery | None, **__: Any) -> None:
        given.append(recovery)

    supervisor = SimpleNamespace(
        start=start, queries=(), serve=lambda: SimpleNamespace(path="s"), on_close=lambda _: None
    )  # fmt: skip
    steered_start.start_query(cast(Supervisor, supervisor), lambda: None, resolve(mapping=options))  # type: ignore[arg-type,return-value]
    (found,) = given
    assert (None if found is None else found.recovery_s) == target_s


class Starts:
    """A supervisor whose starts take until they are let go on."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.attached = self.closed = 0
        self.second: threading.Thread | None = None
        self.second_attaches, self.together = threading.Event(), False
        self.in_start, self.go_on = threading.Semaphore(0), {"good": threading.Event(), "bad": threading.Event()}

    def serve(self) -> SimpleNamespace:
        return SimpleNamespace(path="s")

    def on_close(self, _call: object) -> None:
        pass

    def attach(self, *_: object) -> SimpleNamespace:
        """The first one lets a second thread start a query."""
        self.attached += 1
        if self.second is None:
            self.second = self.begin("good")
            self.together = self.second_attaches.wait(0.5)
        else:
            self.second_attaches.set()
        return SimpleNamespace(close=self.close)

    def close(self) -> None:
        self.closed += 1

    def start(self, build: Callable[[], str], *_: object, **__: object) -> None:
        name = build()
        self.in_start.release()
        assert self.go_on[name].wait(60.0)
        if name == "bad":
            raise BadInput("it does not start")
        self.queries.append(name)

    def begin(self, name: str) -> threading.Thread:
        config = resolve(mapping={"policy": "adaptive"})

        def go() -> None:
            try:
                steered_start.start_query(cast(Supervisor, self), cast(Any, lambda: name), config)
            except BadInput:
                assert name == "bad"

        thread = threading.Thread(target=go)
        thread.start()
        return thread

    def end(self, name: str, thread: threading.Thread) -> None:
        self.go_on[name].set()
        thread.join(60.0)
        assert not thread.is_alive()


def test_threads_that_start_queries_attach_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts()
    monkeypatch.setattr(steered_start, "attach_once", starts.attach)
    starts.end("good", starts.begin("good"))
    assert starts.second is not None
    starts.end("good", starts.second)
    assert (starts.attached, starts.queries, starts.together) == (2, ["good", "good"], False)


def test_a_query_that_does_not_start_leaves_the_controller_to_another_that_is_being_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts = Starts()
    monkeypatch.setattr(steered_start, "attach_once", lambda *_: SimpleNamespace(close=starts.close))
    threads = {name: starts.begin(name) for name in ("bad", "good")}
    assert starts.in_start.acquire(timeout=60.0) and starts.in_start.acquire(timeout=60.0)
    for name, thread in threads.items():
        starts.end(name, thread)
    assert (starts.queries, starts.closed) == (["good"], 0)
    starts.queries.clear()
    starts.end("bad", starts.begin("bad"))
    assert starts.closed == 1, "the last one ends it"
