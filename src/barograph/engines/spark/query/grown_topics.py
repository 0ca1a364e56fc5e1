"""Ends the epoch of a query whose topic has got more partitions: the connector reads them only from the next epoch on.

Executors report how many partitions topics have (``jvm/kafka/EndOffsets.scala``), and the driver knows how many its
present epochs read (``Topics.scala``). An epoch is ended once for each number of partitions: those of a topic that is
never read whole would end one epoch after the other. Where nothing may be changed, it is only said.
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol

from barograph.engines.spark.bridge.reports import GrownTopic

log = logging.getLogger(__name__)

LOOK_S = 5.0  # executors ask brokers as often


class ReadsTopics(Protocol):
    """What this needs of an engine."""

    def lives(self) -> bool: ...

    def grown_topics(self) -> list[GrownTopic]: ...

    def end_epoch(self, topology: str) -> None: ...


class GrownTopics:
    """Of one driver. acts: whether epochs may be ended now."""

    def __init__(
        self, engine: ReadsTopics, acts: Callable[[], bool] = lambda: True, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine, self._acts, self._now = engine, acts, now
        self._looked_s = float("-inf")
        self._ended: dict[tuple[str, str], int] = {}  # topology and topic -> partitions for which an epoch was ended
        self._told: dict[tuple[str, str], int] = {}

    def lives(self) -> bool:
        return self._engine.lives()

    def keep_up(self) -> None:
        """The supervisor calls it once a second."""
        if self._now() - self._looked_s < LOOK_S:
            return
        self._looked_s = self._now()
        for grown in self._engine.grown_topics():
            key, count = (grown.topology, grown.topic), grown.partitions
            if self._ended.get(key) == count:
                continue
            acts = self._acts()
            if acts:
                self._engine.end_epoch(grown.topology)
                self._ended[key] = count
            elif self._told.get(key) == count:
                continue
            self._told[key] = count
            log.info(
                "topic %s has %d partitions, and this epoch of %s reads %d: %s", grown.topic, count, grown.topology,
                grown.read, "it ends now" if acts else "the others are read from its next epoch on",
            )  # fmt: skip
