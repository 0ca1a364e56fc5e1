"""Asks a broker where topics end, in Kafka's own protocol, again and again: the truth that a lag is compared with.

It shares nothing with the plug-in, neither code nor a consumer, so it cannot be wrong in the same way.
"""

import bisect
import socket
import struct
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType

from barograph.kafka import Login

EVERY_S = 0.1
_TIMEOUT_S = 10.0
_LIST_OFFSETS, _METADATA, _HANDSHAKE, _AUTHENTICATE = (2, 1), (3, 1), (17, 1), (36, 0)  # key and version
_LATEST = -1
_NOT_YET = (3, 5, 6)  # unknown topic or partition, no leader, not the leader
_CLIENT = "bench"


class NotYet(Exception):  # noqa: N818  # not an error: it is asked again
    """The broker has the topic, and does not serve all of its partitions yet."""


class Answer:
    """Reads a response piece by piece."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, size: int) -> int:
        self._at += size
        return int.from_bytes(self._data[self._at - size : self._at], "big", signed=True)

    def text(self) -> str:
        size = max(0, self.number(2))
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def many(self) -> range:
        return range(self.number(4))


class BrokerAsked:
    """One connection to one broker, which leads all partitions."""

    def __init__(self, address: str, login: Login | None = None) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), _TIMEOUT_S)
        if login is not None:
            self._ask(_HANDSHAKE, _text("PLAIN"))
            word = f"\0{login.user}\0{login.password}".encode()
            answer = self._ask(_AUTHENTICATE, struct.pack(">i", len(word)) + word)
            if (code := answer.number(2)) != 0:
                raise RuntimeError(f"the broker refuses the login (code {code})")

    def close(self) -> None:
        self._socket.close()

    def partitions(self) -> dict[str, int]:
        """Of every topic, how many it has."""
        answer = self._ask(_METADATA, struct.pack(">i", -1))
        for _ in answer.many():  # brokers
            answer.number(4), answer.text(), answer.number(4), answer.text()
        answer.number(4)
        found = {}
        for _ in answer.many():
            answer.number(2)
            name = answer.text()
            answer.number(1)
            found[name] = len(counted := answer.many())
            for _ in counted:
                answer.number(2), answer.number(4), answer.number(4)
                for _ in range(2):  # replicas, and those in sync
                    for _ in answer.many():
                        answer.number(4)
        return found

    def end(self, topic: str, partitions: Iterable[int]) -> int:
        """The sum of the ends of these partitions."""
        asked = [struct.pack(">iq", p, _LATEST) for p in partitions]
        body = struct.pack(">ii", -1, 1) + _text(topic) + struct.pack(">i", len(asked)) + b"".join(asked)
        answer, found = self._ask(_LIST_OFFSETS, body), 0
        for _ in answer.many():
            answer.text()
            for _ in answer.many():
                answer.number(4)
                if (code := answer.number(2)) in _NOT_YET:
                    raise NotYet
                if code != 0:
                    raise RuntimeError(f"the broker does not say where {topic} ends (code {code})")
                answer.number(8)
                found += answer.number(8)
        return found

    def _ask(self, what: tuple[int, int], body: bytes) -> Answer:
        request = struct.pack(">hhi", *what, 0) + _text(_CLIENT) + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        answer = Answer(self._exactly(Answer(self._exactly(4)).number(4)))
        answer.number(4)  # the number of the request
        return answer

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = self._socket.recv(size - len(found))
            if not piece:
                raise RuntimeError("the broker closed the connection")
            found += piece
        return found


class Ends:
    """The end of one topic over time: when it was asked for, when the answer came (seconds since 1970), the answer."""

    def __init__(self) -> None:
        self._asked_s: list[float] = []
        self._told_s: list[float] = []
        self._ends: list[int] = []

    def put(self, asked_s: float, told_s: float, end: int) -> None:
        self._asked_s.append(asked_s)
        self._told_s.append(told_s)
        self._ends.append(end)

    def __len__(self) -> int:
        return len(self._ends)

    def to_json(self) -> list[tuple[float, float, int]]:
        return list(zip(self._asked_s, self._told_s, self._ends, strict=True))

    def least_at(self, at_s: float) -> int:
        """The topic had this many rows then, or more."""
        at = bisect.bisect_right(self._told_s, at_s) - 1
        return self._ends[at] if at >= 0 else 0

    def most_at(self, at_s: float) -> int:
        """The topic had this many rows then, or fewer."""
        return self._ends[min(bisect.bisect_left(self._asked_s, at_s), len(self._ends) - 1)]


class EndsWatched:
    """Asks for the end of the first new topic whose name fits, until the block ends."""

    def __init__(self, address: str, login: Login | None, prefix: str, suffix: str) -> None:
        self.ends, self.failure = Ends(), ""
        self._broker = BrokerAsked(address, login)
        self._before = set(self._broker.partitions())
        self._prefix, self._suffix = prefix, suffix
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "EndsWatched":
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        self._broker.close()

    def _run(self) -> None:
        topic, count = "", 0
        try:
            while not self._over.wait(EVERY_S):
                if not topic:
                    new = {n: c for n, c in self._broker.partitions().items() if n not in self._before}
                    topic, count = next(((n, c) for n, c in new.items() if self._fits(n)), ("", 0))
                if topic:
                    asked_s = time.time()
                    with suppress(NotYet):
                        end = self._broker.end(topic, range(count))
                        self.ends.put(asked_s, time.time(), end)
        except (OSError, RuntimeError) as error:
            self.failure = str(error)

    def _fits(self, name: str) -> bool:
        return name.startswith(self._prefix) and name.endswith(self._suffix)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
