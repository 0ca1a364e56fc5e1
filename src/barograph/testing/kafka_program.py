"""A program that has one broker, or one feed, of its own: for a host, whose addresses and files only it sees.

``kafka_program.py broker|feed OPTIONS``, OPTIONS as JSON. It says that it is ready in a line of JSON, and answers each
order, a line of its standard input, by another. It ends when its input ends, or when an order fails.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from barograph.kafka import start_broker
from barograph.kafka.feed import start_feed

Answer = dict[str, Any]
Orders = Mapping[str, Callable[..., Answer]]


@contextmanager
def broker(**options: Any) -> Iterator[tuple[Answer, Orders]]:
    """options: of ``start_broker``."""
    with start_broker(**options) as running:

        def told(order: Callable[[], None]) -> Answer:
            order()
            return {"pid": running.pid}

        client = {} if running.login is None else running.login.options()
        first = {"address": running.address, "client": client, "pid": running.pid}
        yield first, {"kill": lambda: told(running.kill), "start": lambda: told(running.start)}


@contextmanager
def feed(**options: Any) -> Iterator[tuple[Answer, Orders]]:
    """options: of ``start_feed``."""
    with start_feed(**options) as running:

        def begin(start_ms: str) -> Answer:
            running.begin(int(start_ms))
            return state()

        def state() -> Answer:
            return {"done": running.is_done(), "failed": running.failed()}

        running.await_ready()
        yield state(), {"begin": begin, "state": state}


def say(answer: Answer) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main(words: list[str]) -> None:
    made = {"broker": broker, "feed": feed}[words[0]]
    with made(**json.loads(words[1])) as (first, orders):
        say(first)
        for line in sys.stdin:
            order, *given = line.split()
            say(orders[order](*given))


if __name__ == "__main__":
    main(sys.argv[1:])
