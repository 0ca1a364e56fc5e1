"""A topic with more partitions than an epoch reads ends that epoch, once for each number of partitions."""

import logging
from dataclasses import dataclass, field

import pytest

from barograph.engines.spark.bridge.reports import GrownTopic
from barograph.engines.spark.query.grown_topics import LOOK_S, GrownTopics


@dataclass
class Driver:
    """Its epochs read ``read`` partitions of each topic, and the next one after a cut as many as it may (``most``)."""

    topics: dict[str, int] = field(default_factory=lambda: {"lines": 4})
    read: int = 4
    most: int = 100
    acts: bool = True
    now_s: float = 1000.0
    looks: int = 0
    cuts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.grown = GrownTopics(self, lambda: self.acts, lambda: self.now_s)

    def lives(self) -> bool:
        return True

    def grown_topics(self) -> list[GrownTopic]:
        self.looks += 1
        return [GrownTopic("counting", name, self.read, n) for name, n in self.topics.items() if n > self.read]

    def end_epoch(self, topology: str) -> None:
        self.cuts.append(topology)
        self.read = min(self.most, max(self.topics.values()))

    def go(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now_s += 1.0
            self.grown.keep_up()


def test_an_epoch_ends_when_its_topic_grows() -> None:
    driver = Driver()
    driver.go(30)
    assert driver.cuts == []
    driver.topics["lines"] = 6
    driver.go(int(LOOK_S))
    assert driver.cuts == ["counting"]
    driver.topics["lines"] = 9
    driver.go(30)
    assert driver.cuts == ["counting"] * 2


def test_partitions_that_are_never_read_end_one_epoch() -> None:
    driver = Driver(most=4)
    driver.topics["lines"] = 6
    driver.go(600)
    assert driver.cuts == ["counting"]


def test_looking_is_rare() -> None:
    driver = Driver()
    driver.go(60)
    assert driver.looks == 60 / LOOK_S


def test_where_nothing_may_be_changed_it_is_said_once_and_done_later(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver(acts=False)
    driver.topics["lines"] = 6
    with caplog.at_level(logging.INFO, "barograph"):
        driver.go(60)
        assert driver.cuts == []
        driver.acts = True
        driver.go(60)
    assert driver.cuts == ["counting"]
    begin = "topic lines has 6 partitions, and this epoch of counting reads 4: "
    assert caplog.messages == [begin + "the others are read from its next epoch on", begin + "it ends now"]
