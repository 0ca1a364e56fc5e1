"""The recovery target bounds epochs of supervised queries without a controller; it lengthens none."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

import pytest
from tests.control.epoch_world import world

from barograph.engines.epoch_length import Recovery, recovery_of
from barograph.engines.spark.bridge.telemetry import EpochSeen
from barograph.engines.spark.driver.epoch_bounds import MEASURE_S, EpochBounds
from barograph.model import Snapshot

LEAST_S, FITTED_S = 5.0, 26.0  # of a topology without spare capacity, and of ``world()``


@dataclass
class Driver:
    """A query whose epochs end only if they are cut; its clock is moved by ``go``."""

    snapshot: Snapshot = field(default_factory=world)
    run: str = "a"
    epoch: int = 0
    up: bool = True
    now_s: float = 1000.0
    cuts: list[float] = field(default_factory=list)
    paced: dict[str, float] = field(default_factory=dict)
    frozen: bool = False
    observed: int = 0

    def __post_init__(self) -> None:
        self.bounds = EpochBounds(self, lambda: self.paced, lambda: self.frozen, lambda: self.now_s)

    def observe(self, _observer: str) -> Snapshot:
        self.observed += 1
        return self.snapshot

    def present(self, _topology: str) -> EpochSeen | None:
        return cast(EpochSeen, SimpleNamespace(run=self.run, epoch=self.epoch, is_up=self.up))

    def lives(self) -> bool:
        return True

    def end_epoch(self, topology: str) -> None:
        assert topology == "t"
        self.cuts.append(self.now_s)
        self.epoch += 1

    def go(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now_s += 1.0
            self.bounds.keep_up()


def lengths(driver: Driver) -> list[float]:
    return [b - a for a, b in zip(driver.cuts, driver.cuts[1:], strict=False)]


def test_an_epoch_ends_when_it_is_as_long_as_the_target_allows() -> None:
    driver = Driver()
    driver.bounds.bound("t", Recovery())
    driver.go(120)
    assert driver.bounds.most_s == {"t": pytest.approx(FITTED_S)}
    assert driver.cuts and set(lengths(driver)) == {FITTED_S + 1}  # an epoch is seen up to a second after it begins
    assert driver.observed == pytest.approx(120 / MEASURE_S, abs=1)


def test_before_the_first_measurement_epochs_are_bounded_too() -> None:
    """A driver that is killed again and again may never get to measure anything."""
    driver = Driver(snapshot=Snapshot(0.0, 10.0, (), ()))
    driver.bounds.bound("t", Recovery(recovery_s=30.0))
    driver.go(100)
    assert driver.bounds.most_s == {}
    assert driver.cuts == [1031.0, 1062.0, 1093.0]


@pytest.mark.parametrize("paced", [{}, {"t": 200.0}], ids=["", "paced"])
def test_on_a_used_checkpoint_epochs_begin_short(paced: dict[str, float]) -> None:
    """What the last driver had read again is committed in parts: most of it, however soon this one dies too."""
    driver = Driver(up=False, paced=paced)
    driver.bounds.bound("t", Recovery(recovery_s=30.0), on_used=True)
    driver.go(20)
    assert driver.cuts == [], "it is not up yet"
    driver.up = True
    driver.go(30)
    assert lengths(driver)[:3] == [3.0, 6.0, 12.0] and driver.cuts[0] == 1022.0
    for life_s in range(3, 30):
        driver.epoch, driver.cuts = 0, []
        driver.run = f"of a driver that lives {life_s} s"
        driver.bounds.bound("t", Recovery(recovery_s=30.0), on_used=True)
        began_s = driver.now_s
        driver.go(life_s)
        assert driver.cuts and driver.cuts[-1] - began_s >= (life_s - 2) / 2


def test_a_query_that_is_not_bounded_keeps_its_epochs_on_a_used_checkpoint_too() -> None:
    """As under a policy that only advises."""
    driver = Driver()
    driver.bounds.bound("t", None, on_used=True)
    driver.go(100)
    assert driver.cuts == []


def test_stale_figures_change_no_bound() -> None:
    """An executor that is silent looks like one without load: the bound would rise just before it is found dead. The
    cycle after it has the load of the silence too."""
    driver = Driver()
    driver.bounds.bound("t", Recovery())
    driver.go(25)
    assert driver.bounds.most_s == {"t": pytest.approx(FITTED_S)}
    for busy, age_s in (((1.0, 0.1, 2.0), 3.5), ((1.0, 10.0, 2.0), 0.5)):
        (of,) = world().topology_metrics
        driver.snapshot = replace(world(busy=busy), topology_metrics=(replace(of, age_s=age_s),))
        driver.go(10)
        assert driver.bounds.most_s == {"t": pytest.approx(FITTED_S)}
    driver.go(10)
    assert driver.bounds.most_s == {"t": LEAST_S}, "the third one is fresh, and covers what it says"


def test_a_higher_load_shortens_the_open_epoch() -> None:
    driver = Driver()
    driver.bounds.bound("t", Recovery())
    driver.go(22)
    driver.snapshot = world(busy=(1.0, 10.0, 1.0))
    driver.go(10)
    assert driver.bounds.most_s == {"t": LEAST_S}
    assert driver.cuts


@pytest.mark.parametrize("why", ["not bounded", "paced by a controller", "frozen"])
def test_other_epochs_are_left_alone(why: str) -> None:
    driver = Driver(paced={"t": 200.0} if why == "paced by a controller" else {}, frozen=why == "frozen")
    driver.bounds.bound("t", recovery_of(None if why == "not bounded" else 30.0, {}))
    driver.go(200)
    assert driver.cuts == []
    if why != "frozen":
        assert driver.observed == 0  # looking costs CPU of the driver


def test_when_its_controller_is_gone_it_is_bounded() -> None:
    driver = Driver(paced={"t": 100.0})
    driver.bounds.bound("t", Recovery())
    driver.go(100)
    assert driver.cuts == []
    driver.paced = {}
    driver.go(100)
    assert driver.cuts


def test_an_epoch_that_outlasts_its_controllers_length_by_far_is_ended() -> None:
    """Executors end epochs by the time of day, which may be set back."""
    driver = Driver(paced={"t": 20.0})
    driver.go(33)
    assert driver.cuts == []
    driver.go(10)
    assert driver.cuts == [1036.0], "20 s, half of that, 5 s, and a second until it was seen"
    assert driver.observed == 0


def test_the_cycle_of_a_start_says_nothing() -> None:
    """An instance that loads code seems busy, and the epoch would be as short as allowed."""
    driver = Driver(snapshot=world(busy=(1.0, 10.0, 1.0)), up=False)
    driver.bounds.bound("t", Recovery())
    driver.go(12)
    driver.up = True
    driver.go(10)
    assert driver.bounds.most_s == {}
    driver.snapshot = world()
    driver.go(10)
    assert driver.bounds.most_s == {"t": pytest.approx(FITTED_S)}
    driver.run, driver.snapshot = "b", world(busy=(1.0, 10.0, 1.0))
    driver.go(10)
    assert driver.bounds.most_s == {"t": pytest.approx(FITTED_S)}
    driver.go(10)
    assert driver.bounds.most_s == {"t": LEAST_S}
