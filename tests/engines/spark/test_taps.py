"""The drain protocol's hands on Spark, with a driver whose answers are given."""

from collections.abc import Mapping

from barograph.engines.spark.gates import Gates
from barograph.engines.spark.news import News
from barograph.engines.spark.taps import NUDGE_S, STEERED_S, SparkTaps


class Engine:
    """Levels change the version of its world; which plan holds is set from outside."""

    def __init__(self) -> None:
        self.gates = Gates(lambda _: None)
        self.levels: dict[str, int] = {}
        self.version, self.holds_version = 4, 4
        self.still = self.reads = False
        self.heeds_triggers = True

    def set_levels(self, levels: Mapping[str, int]) -> int:
        if dict(levels) != self.levels:
            self.levels, self.version = dict(levels), self.version + 1
        return self.version

    def is_still(self, _topology: str, _timeout_s: float) -> bool:
        return self.still

    def flows(self, _topology: str, _timeout_s: float) -> bool:
        return self.reads


class Driver:
    def __init__(self) -> None:
        self.engine, self.news = Engine(), News()
        self.steered_s: float | None = None


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def taps(driver: Driver, clock: Clock) -> SparkTaps:
    return SparkTaps(driver, clock)  # type: ignore[arg-type]  # all that it needs of a supervisor


def told(driver: Driver) -> int:
    return driver.news.after(-1, 0)


def test_a_plan_made_with_the_new_levels_is_waited_for_and_asked_for() -> None:
    driver, clock = Driver(), Clock()
    found = taps(driver, clock)
    driver.steered_s = clock.now_s
    assert not found.reschedule({"a": 1}), "the plan that holds was made before"
    assert not found.reschedule({"a": 1}) and told(driver) == 1, "told once, not at every look"
    clock.now_s += NUDGE_S
    assert not found.reschedule({"a": 1}) and told(driver) == 2, "told again: the first plan may have been refused"
    driver.engine.holds_version = driver.engine.version
    assert found.reschedule({"a": 1})
    assert not found.reschedule({"a": 2})


def test_where_nobody_steers_nobody_is_waited_for() -> None:
    driver, clock = Driver(), Clock()
    found = taps(driver, clock)
    assert found.reschedule({"a": 1}) and driver.engine.levels == {"a": 1}
    driver.steered_s = clock.now_s
    clock.now_s += STEERED_S
    assert found.reschedule({"a": 2}), "the controller has been gone for long"


def test_pausing_and_flowing() -> None:
    driver = Driver()
    found = taps(driver, Clock())
    found.pause("a")
    assert driver.engine.gates.paused == {"a"} and not found.drained("a") and not found.flows("a")
    driver.engine.still = True
    assert found.drained("a")
    found.resume("a")
    assert driver.engine.gates.paused == frozenset()
    driver.engine.gates.rest(["a"])
    assert found.flows("a"), "its sources are not due to read: no node is theirs"


def test_triggers_mean_what_the_policy_that_steers_says() -> None:
    driver, clock = Driver(), Clock()
    found = taps(driver, clock)
    driver.engine.heeds_triggers = False
    assert found.heeds_triggers(), "no controller steers"
    driver.steered_s = clock.now_s
    assert not found.heeds_triggers()
    clock.now_s += STEERED_S + 1
    assert found.heeds_triggers(), "the one that said so is silent"
