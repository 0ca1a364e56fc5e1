"""The hooks of the priority protocol on Spark, with a fake driver."""

from collections.abc import Mapping

from barograph.engines.spark.driver.change_signal import ChangeSignal
from barograph.engines.spark.driver.priority_hooks import NUDGE_S, SparkPriorityHooks
from barograph.engines.spark.driver.supervisor import STEERED_S
from barograph.engines.spark.orders.source_gates import SourceGates


class Engine:
    """Levels change its version; the test sets which plan is in effect."""

    def __init__(self) -> None:
        self.gates = SourceGates(lambda _: None)
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
        self.engine, self.change_signal = Engine(), ChangeSignal()
        self.steered_s: float | None = None


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def hooks(driver: Driver, clock: Clock) -> SparkPriorityHooks:
    return SparkPriorityHooks(driver, clock)  # type: ignore[arg-type]  # all that it needs of a supervisor


def signals(driver: Driver) -> int:
    return driver.change_signal.after(-1, 0)


def test_a_plan_made_with_the_new_levels_is_requested_and_awaited() -> None:
    driver, clock = Driver(), Clock()
    found = hooks(driver, clock)
    driver.steered_s = clock.now_s
    assert not found.reschedule({"a": 1}), "the plan in effect was made before"
    assert not found.reschedule({"a": 1}) and signals(driver) == 1, "signalled once, not at every poll"
    clock.now_s += NUDGE_S
    assert not found.reschedule({"a": 1}) and signals(driver) == 2, (
        "signalled again: the first plan may have been refused"
    )
    driver.engine.holds_version = driver.engine.version
    assert found.reschedule({"a": 1})
    assert not found.reschedule({"a": 2})


def test_without_a_controller_no_plan_is_waited_for() -> None:
    driver, clock = Driver(), Clock()
    found = hooks(driver, clock)
    assert found.reschedule({"a": 1}) and driver.engine.levels == {"a": 1}
    driver.steered_s = clock.now_s
    clock.now_s += STEERED_S
    assert found.reschedule({"a": 2}), "the controller has been gone for long"


def test_pausing_and_flowing() -> None:
    driver = Driver()
    found = hooks(driver, Clock())
    found.pause("a")
    assert driver.engine.gates.paused == {"a"} and not found.drained("a") and not found.flows("a")
    driver.engine.still = True
    assert found.drained("a")
    found.resume("a")
    assert driver.engine.gates.paused == frozenset()
    driver.engine.gates.rest(["a"])
    assert found.flows("a"), "its sources need not read: it has no node"


def test_triggers_are_heeded_as_the_steering_policy_says() -> None:
    driver, clock = Driver(), Clock()
    found = hooks(driver, clock)
    driver.engine.heeds_triggers = False
    assert found.heeds_triggers(), "no controller steers"
    driver.steered_s = clock.now_s
    assert not found.heeds_triggers()
    clock.now_s += STEERED_S + 1
    assert found.heeds_triggers(), "the controller that said so is silent"
