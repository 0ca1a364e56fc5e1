"""A query that starts behind waits for its backlog to be in the topics."""

from typing import cast

import pytest

from barograph.experiments.run_settings import FromKafka
from barograph.experiments.running.topic_feeds import TopicFeeds
from barograph.experiments.running.warm_up import RunFailed
from barograph.kafka.feed import Feed


class FakeFeed:
    """Has caught up after so many looks, or fails first."""

    def __init__(self, looks: int, why: str = "") -> None:
        self.topic, self.looks, self.why = "t", looks, why

    def has_caught_up(self) -> bool:
        self.looks -= 1
        return self.looks <= 0

    def failed(self) -> str:
        return self.why


def feeds(*fake: FakeFeed) -> TopicFeeds:
    return TopicFeeds("h:1", FromKafka(), (), tuple(cast(Feed, f) for f in fake), None)


def test_all_topics_have_their_backlog_before_the_query_starts() -> None:
    quick, slow = FakeFeed(1), FakeFeed(4)
    feeds(quick, slow).await_backlog()
    assert quick.looks <= 0
    assert slow.looks == 0


def test_a_producer_that_fails_ends_the_wait() -> None:
    with pytest.raises(RunFailed, match="rows cannot be written into the topic t: no disk"):
        feeds(FakeFeed(1000000, "no disk")).await_backlog()


def test_each_producer_that_failed_is_named() -> None:
    assert feeds(FakeFeed(1)).failures() == ()
    both = feeds(FakeFeed(1, "no disk"), FakeFeed(1), FakeFeed(1, "no login")).failures()
    assert [why.rpartition(": ")[2] for why in both] == ["no disk", "no login"]
