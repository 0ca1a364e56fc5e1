"""Which queries have their epochs bounded by the recovery target: all but those under a policy that only advises."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barograph.config import resolve
from barograph.control import steered_start
from barograph.engines.epoch_length import Recovery
from barograph.engines.spark.driver.supervisor import Supervisor

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
