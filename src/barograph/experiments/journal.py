"""What a run must remember should its driver die: appended line by line, read back by the driver that takes over.

Without a file it only remembers. It decides nothing; each line is whole or, the last one after a kill, left out.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from barograph.engines.latency import Histogram
from barograph.experiments.first import First
from barograph.experiments.repeats import RestartReport
from barograph.experiments.report import CLOCKS, ActionReport
from barograph.model import Placement
from barograph.model.codec import from_json, to_json

Window = tuple[float, float]
_TENTH_MS = 10
DRIVER_KILLED = "the driver was killed"
STARTED_AGAIN = "the application was ended and started again, to move instances"


@dataclass
class Past:
    """What earlier drivers of the run left. planned_ms: of the epoch last seen open. first: what the run began with.

    parallelism, placement: as last ordered; parallelism only of operators that were rescaled since the query was built.
    """

    start_ms: int = 0
    first: First | None = None
    actions: list[tuple[ActionReport, Window]] = field(default_factory=list)
    restarts: list[RestartReport] = field(default_factory=list)
    output: dict[int, int] = field(default_factory=dict)
    latency: dict[str, Histogram] = field(default_factory=lambda: {c: Histogram() for c in CLOCKS})
    parallelism: dict[str, int] = field(default_factory=dict)
    placement: Placement = field(default_factory=Placement)
    read: int = 0
    planned_ms: int | None = None
    epochs: int = 0
    killed_ms: int | None = None
    killed_why: str = DRIVER_KILLED

    @property
    def begun(self) -> bool:
        return self.start_ms > 0

    @property
    def done(self) -> set[tuple[float, str]]:
        return {(report.at_s, report.action) for report, _ in self.actions}


class Journal:
    """path: None for a run whose driver is its only one."""

    def __init__(self, path: Path | None = None) -> None:
        self.past = read(path) if path is not None and path.exists() else Past()
        self._file: TextIO | None = None if path is None else path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self._actions: list[tuple[ActionReport, Window]] = []
        self._output: dict[int, int] = {}
        self._latency: dict[str, Histogram] = {}
        self._epochs: set[int] = set()
        self._ordered = (self.past.parallelism, self.past.placement)

    def begin(self, start_ms: int, first: First) -> None:
        self.past.start_ms, self.past.first = start_ms, first
        self._write("begun", start_ms=start_ms, first=to_json(first))

    def killed(self, at_ms: int, report: ActionReport, at_s: float) -> None:
        """Written by who killed the driver."""
        self._write("killed", at_ms=at_ms)
        self.acted(report, (at_s, at_s))

    def left(self, at_ms: int) -> None:
        """Written by a driver that ends so that another one goes on."""
        self._write("killed", at_ms=at_ms, why=STARTED_AGAIN)

    def driver_is_up(self, committed_rows: int, now_ms: int) -> None:
        """A driver that took over runs: what its predecessor's death cost is known now."""
        past = self.past
        if past.killed_ms is None:
            return
        again = sum(n for t, n in past.output.items() if past.planned_ms and t * _TENTH_MS >= past.planned_ms)
        restart = RestartReport(
            (past.killed_ms - past.start_ms) / 1000, past.killed_why, (now_ms - past.killed_ms) / 1000,
            max(0, past.read - committed_rows), again,
        )  # fmt: skip
        past.restarts.append(restart)
        past.killed_ms = None
        self._write("restart", **asdict(restart))

    def acted(self, report: ActionReport, window: Window) -> None:
        with self._lock:
            self._actions.append((report, window))
        self._write("action", report=asdict(report), window=list(window))

    def ordered(self, parallelism: Mapping[str, int], placement: Placement) -> None:
        """Written when it is another than before: a controller orders without telling this process."""
        if (dict(parallelism), placement) == self._ordered:
            return
        self._ordered = (dict(parallelism), placement)
        self._write("ordered", parallelism=dict(parallelism), placement=to_json(placement))

    def restarted(self, restart: RestartReport) -> None:
        self._write("restart", **asdict(restart))

    def saw(
        self, output: Mapping[int, int], latency: Mapping[str, Histogram], read_rows: int, planned_ms: int | None
    ) -> None:
        """What this driver has seen put out and read so far; of the output only what is new is written."""
        self._latency = dict(latency)
        new = {t: rows for t, rows in output.items() if self._output.get(t) != rows}
        self._output.update(new)
        if planned_ms is not None:
            self._epochs.add(planned_ms)
        if self._file is not None:
            times = {c: [dict(h.rows), h.sum_ms, h.max_ms] for c, h in latency.items()}
            self._write(
                "saw", output=new, latency=times, read=read_rows, planned_ms=planned_ms, epochs=len(self._epochs)
            )

    @property
    def output(self) -> dict[int, int]:
        """Rows out by 10 ms, of all drivers."""
        whole = dict(self.past.output)
        for tenth, rows in self._output.items():
            whole[tenth] = whole.get(tenth, 0) + rows
        return whole

    @property
    def latency(self) -> dict[str, Histogram]:
        """By clock, of all rows put out, those of earlier drivers included."""
        return {c: self.past.latency[c] + self._latency.get(c, Histogram()) for c in CLOCKS}

    def actions(self) -> list[tuple[ActionReport, Window]]:
        """Of all drivers, in the order of their seconds."""
        with self._lock:
            return sorted([*self.past.actions, *self._actions], key=lambda a: a[0].at_s)

    def _write(self, kind: str, **fields: Any) -> None:
        if self._file is not None:
            with self._lock:
                self._file.write(json.dumps({"kind": kind, **fields}) + "\n")
                self._file.flush()


def read(path: Path) -> Past:
    past = Past()
    driver: dict[int, int] = {}  # what the driver being read has seen put out
    times: dict[str, Histogram] = {}
    epochs = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            noted = json.loads(line)
        except ValueError:
            continue  # the last line of a driver that was killed while writing it
        kind = noted.pop("kind")
        if kind == "begun":
            past.start_ms, past.first = noted["start_ms"], from_json(First, noted["first"])
            past.placement = past.first.placement
        elif kind == "action":
            report = ActionReport(**{**noted["report"], "did": tuple(noted["report"]["did"])})
            past.actions.append((report, (noted["window"][0], noted["window"][1])))
        elif kind == "restart":
            past.restarts.append(RestartReport(**noted))
        elif kind == "ordered":
            past.parallelism, past.placement = noted["parallelism"], from_json(Placement, noted["placement"])
        elif kind == "saw":
            driver.update({int(t): rows for t, rows in noted["output"].items()})
            times = {
                c: Histogram({int(b): n for b, n in rows.items()}, total, largest)
                for c, (rows, total, largest) in noted["latency"].items()
            }
            # Between two lives only what is committed counts as read; what had been read before is read again.
            past.read = max(past.read, noted["read"])
            past.planned_ms, epochs = noted["planned_ms"] or past.planned_ms, noted["epochs"]
        elif kind == "killed":
            past.killed_ms, past.killed_why = noted["at_ms"], noted.get("why", DRIVER_KILLED)
            _add(past, driver, times, epochs)
            driver, times, epochs = {}, {}, 0
    _add(past, driver, times, epochs)
    return past


def _add(past: Past, driver: Mapping[int, int], times: Mapping[str, Histogram], epochs: int) -> None:
    past.epochs += epochs
    past.latency = {c: h + times.get(c, Histogram()) for c, h in past.latency.items()}
    for tenth, rows in driver.items():
        past.output[tenth] = past.output.get(tenth, 0) + rows
