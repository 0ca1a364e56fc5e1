"""What the supervisor of a driver logs, without Spark."""

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barograph.engines.spark.driver.supervisor import Supervisor


def test_a_freeze_and_its_end_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    held: list[bool] = []
    driver = cast(Any, SimpleNamespace(frozen=False, engine=SimpleNamespace(pace=SimpleNamespace(hold=held.append))))
    with caplog.at_level(logging.INFO, "barograph"):
        for on in (True, True, False):
            Supervisor.freeze(driver, on)
    assert caplog.messages == ["the driver is frozen: no plan is applied until it is thawed", "the driver is thawed"]
    assert held == [True, True, False] and driver.frozen is False
