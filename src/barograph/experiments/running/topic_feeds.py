"""The topics that a run reads instead of the replay source, their broker, and the processes that fill them."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from barograph.experiments.run_settings import FromKafka, RunSettings
from barograph.experiments.running.warm_up import RunFailed, warm_up_inputs
from barograph.kafka import Broker, start_broker
from barograph.kafka.feed import Feed, start_feed
from barograph.workloads.replay import Replay
from barograph.workloads.topic import Topic
from barograph.workloads.workload import Workload

BACKLOG_TIMEOUT_S = 900.0  # for rows that are due already; a producer writes some ten thousand a second
_POLL_S = 0.05


@dataclass(frozen=True)
class TopicFeeds:
    """One topic for each input. kafka: with the login of the broker. broker: the one that was started for the run;
    None: they are on another. out: the topic that the result goes to."""

    brokers: str
    kafka: FromKafka
    topics: tuple[Topic, ...]
    feeds: tuple[Feed, ...]
    broker: Broker | None
    out: Topic | None = None

    def begin(self, inputs: Sequence[Replay], start_ms: int) -> tuple[Replay, ...]:
        """The load starts then. Returns the inputs, to be read from their topics."""
        for feed in self.feeds:
            feed.begin(start_ms)
        return tuple(replace(i, topic=t) for i, t in zip(inputs, self.topics, strict=True))

    def await_backlog(self) -> None:
        """Until all rows that are due are in the topics. A query that began before would follow the producers."""
        deadline = time.monotonic() + BACKLOG_TIMEOUT_S
        while not all(feed.has_caught_up() for feed in self.feeds):
            self.check()
            if time.monotonic() > deadline:
                text = f"the backlog was not in the topics within {BACKLOG_TIMEOUT_S:g} s: give a shorter --behind"
                raise RunFailed(text)
            time.sleep(_POLL_S)

    @contextmanager
    def warm(self, workload: Workload, parallelism: Mapping[str, int]) -> Iterator[tuple[Replay, ...]]:
        """Inputs for a warm-up, from topics that are filled until the block ends."""
        inputs = warm_up_inputs(workload, parallelism)
        with ExitStack() as ending:
            topics, feeds = _filled(
                inputs, f"barograph-warm-up-{secrets.token_hex(4)}", self.brokers, self.kafka, ending
            )
            for feed in feeds:
                feed.begin(int(time.time() * 1000))
            yield tuple(replace(i, topic=t) for i, t in zip(inputs, topics, strict=True))

    def check(self) -> None:
        for why in self.failures():
            raise RunFailed(why)

    def failures(self) -> tuple[str, ...]:
        """Of producers that have ended before all of their rows were in the topic."""
        failed = ((feed.topic, feed.failed()) for feed in self.feeds)
        return tuple(f"rows cannot be written into the topic {topic}: {why}" for topic, why in failed if why)


def open_feeds(settings: RunSettings, ending: ExitStack, say: Callable[[str], None]) -> TopicFeeds:
    """Start the broker, unless one is given, and make the topics. All of it ends with ``ending``."""
    kafka = settings.kafka
    assert kafka is not None
    broker = None
    if kafka.brokers is None:
        say("starting a Kafka broker")
        broker = ending.enter_context(start_broker())
        kafka = replace(kafka, client=broker.login.options())
    brokers = kafka.brokers or (broker.address if broker is not None else "")
    name = f"barograph-{settings.workload.name}-{secrets.token_hex(4)}"
    topics, feeds = _filled(settings.inputs(0), name, brokers, kafka, ending)
    out = Topic(f"{name}-out", brokers, kafka.client) if kafka.writes else None
    return TopicFeeds(brokers, kafka, topics, feeds, broker, out)


def _filled(
    inputs: Sequence[Replay], name: str, brokers: str, kafka: FromKafka, ending: ExitStack
) -> tuple[tuple[Topic, ...], tuple[Feed, ...]]:
    """A topic for each input, and the process that is to fill it, ready to begin."""
    topics = tuple(Topic(f"{name}-{n}", brokers, kafka.client) for n in range(len(inputs)))
    feeds = []
    for topic, load in zip(topics, inputs, strict=True):
        options = {name: value for name, value in load.options().items() if name != "start_ms"}
        feeds.append(ending.enter_context(start_feed(topic.name, brokers, kafka.client, options)))
    for feed in feeds:
        feed.await_ready()
    return topics, tuple(feeds)
