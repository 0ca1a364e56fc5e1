"""Upkeep goes on after an error, and ends with the application or when it is closed. Executors are asked once for all,
and limits that no controller keeps up are lifted."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Mapping

import pytest
from pyspark.errors import IllegalArgumentException

from barograph.engines.spark.attached_controllers import AttachedControllers
from barograph.engines.spark.bridge.reports import LastReport
from barograph.engines.spark.driver.supervisor import STEERED_S
from barograph.engines.spark.driver.upkeep import ExecutorWatch, RegularUpkeep
from barograph.engines.spark.orders.left_limits import LeftLimits
from barograph.engines.spark.orders.share_orders import ShareOrders, Shares
from barograph.model import Instance, Plan

# PySpark raises errors of Java as types of its own, which Py4J does not know.
ERRORS = (ConnectionResetError("no answer"), ValueError("odd"), IllegalArgumentException("odd"))
each_error = pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
REPORTS = {"1": LastReport(0.2), "2": LastReport(0.1, ("1",))}


class FakeEngine:
    """fails: whether calls raise, as they do while Spark's gateway cannot be reached."""

    def __init__(self, error: Exception = ERRORS[0]) -> None:
        self.calls, self.error = 0, error
        self.called, self.failed = threading.Semaphore(0), threading.Semaphore(0)
        self.fails = False
        self.alive = True

    def keep_up(self) -> None:
        self.calls += 1
        if self.fails:
            self.failed.release()
            raise self.error
        self.called.release()

    def lives(self) -> bool:
        return self.alive


def happened(what: threading.Semaphore, times: int) -> bool:
    return all(what.acquire(timeout=20) for _ in range(times))


@each_error
def test_it_goes_on_after_errors_until_it_is_closed(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeEngine(error)
    upkeep = RegularUpkeep({"its work": engine}, every_s=0.001)
    assert happened(engine.called, 2)
    engine.fails = True
    assert happened(engine.failed, 5)
    engine.fails = False
    assert happened(engine.called, 5)
    upkeep.close()
    calls = engine.calls
    assert not upkeep._thread.is_alive()
    assert engine.calls == calls
    (warning,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert warning.startswith(f"its work failed: {type(error).__name__}: ")


def test_it_ends_with_the_application() -> None:
    engine = FakeEngine()
    engine.fails, engine.alive = True, False
    upkeep = RegularUpkeep({"its work": engine}, every_s=0.001)
    upkeep._thread.join(20)
    assert not upkeep._thread.is_alive()
    upkeep.close()
    assert engine.calls == 1


def test_one_that_fails_does_not_keep_another_from_its_turn() -> None:
    broken, engine = FakeEngine(), FakeEngine()
    broken.fails = True
    upkeep = RegularUpkeep({"failing": broken, "working": engine}, every_s=0.001)
    assert happened(broken.failed, 3) and happened(engine.called, 3)
    upkeep.close()


class Reporting:
    asked = 0

    def lives(self) -> bool:
        return True

    def last_reports(self) -> dict[str, LastReport]:
        self.asked += 1
        return REPORTS


class Judge:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.seen: list[Mapping[str, LastReport]] = []

    def judge(self, reports: Mapping[str, LastReport]) -> None:
        self.seen.append(reports)
        if self.error is not None:
            raise self.error


def test_it_asks_once_for_all() -> None:
    engine, judges = Reporting(), (Judge(), Judge())
    ExecutorWatch(engine, *judges).keep_up()
    assert engine.asked == 1
    assert [judge.seen for judge in judges] == [[REPORTS], [REPORTS]]


@each_error
def test_all_judge_before_an_error_is_raised(error: Exception) -> None:
    broken, other = Judge(error), Judge()
    with pytest.raises(type(error)):
        ExecutorWatch(Reporting(), broken, other).keep_up()
    assert other.seen == [REPORTS]


A, B = Instance("t", "split", 0), Instance("t", "split", 1)
NIGHT = {A: (20.0, 10.0), B: (100.0, 10.0)}
LIFTED = {A: (100.0, 10.0), B: (100.0, 10.0)}


class Driver:
    """A driver whose controller has ordered its limits of the night. now_s: its clock; ``pass_s`` lets it run."""

    def __init__(self) -> None:
        self.now_s, self.frozen, self.applying = 1000.0, False, False
        self.plan_s: float | None = None
        self.sent: list[Shares] = []
        self.shares = ShareOrders(self.sent.append)
        self.controllers = AttachedControllers(clock=lambda: self.now_s)
        self.limits = LeftLimits(
            self, self.controllers, lambda: self.plan_s, lambda: self.frozen, lambda: self.applying, STEERED_S,
            clock=lambda: self.now_s,
        )  # fmt: skip

    def lift_limits(self) -> list[Instance]:
        return self.shares.lift()

    def lives(self) -> bool:
        return True

    def attach(self, cycle_s: float = 2.0, pid: int | None = None) -> int:
        number = self.controllers.attach("adaptive", "act", "/h", "", pid or os.getpid(), cycle_s)
        self.plan()
        return number

    def plan(self, limit_pct: float = 20.0) -> None:
        self.plan_s = self.now_s
        self.shares.order(Plan(limits_pct={A: limit_pct}, shares_pct={A: 10.0, B: 10.0}, version=1))

    def pass_s(self, seconds: float) -> None:
        """As upkeep is called, once a second."""
        for _ in range(round(seconds)):
            self.now_s += 1.0
            self.limits.keep_up()


def test_limits_of_a_controller_that_was_detached_are_lifted_once(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver()
    number = driver.attach()
    driver.pass_s(2)
    driver.controllers.detach(number)
    with caplog.at_level(logging.WARNING, "barograph"):
        driver.pass_s(3)
    assert driver.sent == [NIGHT, LIFTED]
    said = "the controller was detached: CPU limits are lifted (instances: 1), shares stay reserved"
    assert caplog.messages == [said] and driver.limits.lifted == said
    driver.attach()
    driver.pass_s(STEERED_S - 1)
    assert driver.sent == [NIGHT, LIFTED, NIGHT] and driver.limits.lifted == ""


def test_limits_of_a_controller_that_died_are_lifted_after_a_while_and_one_that_comes_back_keeps_them() -> None:
    driver = Driver()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as keeper:
        driver.attach(pid=keeper.pid)
        driver.pass_s(STEERED_S - 1)  # killed, and started again by its keeper
        driver.plan()
        keeper.kill()
        keeper.wait()
    driver.pass_s(STEERED_S - 1)
    assert driver.sent == [NIGHT]
    driver.attach()  # steer, once more
    driver.pass_s(STEERED_S)
    assert driver.sent == [NIGHT]
    driver.pass_s(1)
    assert driver.sent == [NIGHT, LIFTED], "it is there and sends no plan"
    assert driver.limits.lifted.startswith("no controller has sent a plan for 60 s: ")


def test_a_frozen_driver_keeps_limits_until_it_is_thawed() -> None:
    driver = Driver()
    driver.controllers.detach(driver.attach())
    driver.frozen = True
    driver.pass_s(3 * STEERED_S)
    assert driver.sent == [NIGHT]
    driver.frozen = False
    driver.pass_s(1)
    assert driver.sent == [NIGHT, LIFTED]


def test_a_long_cycle_a_long_change_and_a_stop_of_the_driver_are_no_silence() -> None:
    driver = Driver()
    driver.attach(cycle_s=300.0)
    driver.pass_s(599)
    assert driver.sent == [NIGHT]
    driver.plan()
    driver.applying = True
    driver.pass_s(900)
    driver.applying = False
    driver.pass_s(1)
    driver.now_s += 7200.0
    driver.pass_s(1)
    assert driver.sent == [NIGHT]
    driver.pass_s(600)
    assert driver.sent == [NIGHT, LIFTED]


def test_limits_stay_where_a_policy_is_measured_to_its_last_row() -> None:
    driver = Driver()
    driver.limits.lifts = False
    driver.controllers.detach(driver.attach())
    driver.pass_s(2 * STEERED_S)
    assert driver.sent == [NIGHT]


def test_limits_by_hand_stay() -> None:
    driver = Driver()
    driver.shares.order(Plan(limits_pct={A: 20.0}, shares_pct={A: 10.0, B: 10.0}))
    driver.pass_s(2 * STEERED_S)
    driver.controllers.detach(driver.attach())
    driver.shares.order(Plan(limits_pct={A: 20.0}))
    driver.pass_s(2 * STEERED_S)
    assert driver.sent == [NIGHT] and driver.limits.lifted == ""
