"""CPU of the processes of a run over time, by what they are for. It reads /proc and decides nothing."""

import bisect
import threading
import time
from pathlib import Path
from types import TracebackType

from bench._processes import cpu_s, parent_of

EVERY_S = 0.25
BROKER, PRODUCER, EXECUTORS, DRIVER, CONTROLLER, CLUSTER = (
    "broker", "producer", "executors", "driver", "controller", "cluster"
)  # fmt: skip
KINDS = (BROKER, PRODUCER, EXECUTORS, DRIVER, CONTROLLER, CLUSTER)
_WORDS = (
    ("source.TopicFeed", PRODUCER),
    ("CoarseGrainedExecutorBackend", EXECUTORS),
    ("barograph.control.process", CONTROLLER),
    ("deploy.master.Master", CLUSTER),
    ("deploy.worker.Worker", CLUSTER),
    ("SparkSubmit", DRIVER),
    ("barograph.cli.main", DRIVER),
)


def kind_of(command: str) -> str:
    """What a process of a run is for; the processes that only watch others belong to the cluster."""
    return next((kind for word, kind in _WORDS if word in command), CLUSTER)


class CpuOverTime:
    """Core-seconds so far, by kind, at moments in seconds since 1970."""

    def __init__(self) -> None:
        self._at_s: list[float] = []
        self._used_s: list[dict[str, float]] = []

    def put(self, at_s: float, used_s: dict[str, float]) -> None:
        self._at_s.append(at_s)
        self._used_s.append(used_s)

    def to_json(self) -> list[tuple[float, dict[str, float]]]:
        return list(zip(self._at_s, self._used_s, strict=True))

    def between(self, start_s: float, end_s: float) -> dict[str, float]:
        """Core-seconds, from the moments that are nearest to both."""
        first, last = self._near(start_s), self._near(end_s)
        return {kind: round(last.get(kind, 0.0) - first.get(kind, 0.0), 2) for kind in KINDS}

    def _near(self, at_s: float) -> dict[str, float]:
        at = bisect.bisect_left(self._at_s, at_s)
        beside = [i for i in (at - 1, at) if 0 <= i < len(self._at_s)]
        return self._used_s[min(beside, key=lambda i: abs(self._at_s[i] - at_s))] if beside else {}


class CpuWatched:
    """Of a process and all that it starts, from ``begin`` until the block ends; and of one broker."""

    def __init__(self, broker: int | None) -> None:
        self.cpu = CpuOverTime()
        self._broker, self._root = broker, 0
        self._used: dict[int, tuple[str, float]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self, root: int) -> None:
        self._root = root
        self._thread.start()

    def __enter__(self) -> "CpuWatched":
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._over.set()
        if self._root:
            self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            self._look()
            used_s: dict[str, float] = {}
            for kind, used in self._used.values():  # of processes that have ended, too
                used_s[kind] = used_s.get(kind, 0.0) + used
            self.cpu.put(time.time(), used_s)

    def _look(self) -> None:
        parents = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    parents[int(folder.name)] = parent_of(int(folder.name))
                except OSError:
                    continue
        mine = {self._root}
        while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
            mine |= more
        for pid in mine | ({self._broker} if self._broker is not None else set()):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                self._used[pid] = BROKER if pid == self._broker else kind_of(command), cpu_s(pid)
            except OSError:
                continue
