"""What a run must not lose when its driver is killed: appended line by line, and read by the driver that takes over.

Without a file it is kept in memory only. A last line that a kill left incomplete is ignored. It decides nothing.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from barograph.engines.latency import Histogram
from barograph.engines.spark.bridge.output_counts import MOST_CENTISECONDS, OutputCounts
from barograph.experiments.figures.pauses import STEP_MS
from barograph.experiments.figures.repeats import RestartReport
from barograph.experiments.report import CLOCKS, ActionReport
from barograph.experiments.steering.first_placement import First
from barograph.model import Placement
from barograph.model.codec import from_json, to_json

Window = tuple[float, float]
MOST_OUTPUT = 24 * MOST_CENTISECONDS  # a day: 35 MB
DRIVER_KILLED = "the driver was killed"
STARTED_AGAIN = "the application was ended and started again, to move instances"


@dataclass
class EarlierDrivers:
    """What earlier drivers of the run recorded. planned_ms: of the last open epoch. first: what the run began with.

    output: by centisecond since 1970, over the last day; rows_out: all of it.
    parallelism, placement: as last ordered; parallelism only of operators that were rescaled since the query was built.
    """

    start_ms: int = 0
    first: First | None = None
    actions: list[tuple[ActionReport, Window]] = field(default_factory=list)
    restarts: list[RestartReport] = field(default_factory=list)
    output: OutputCounts = field(default_factory=lambda: OutputCounts(MOST_OUTPUT))
    rows_out: int = 0
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
    """path: None where the run has only one driver."""

    def __init__(self, path: Path | None = None) -> None:
        self.earlier = read(path) if path is not None and path.exists() else EarlierDrivers()
        self._file: TextIO | None = None if path is None else path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self._actions: list[tuple[ActionReport, Window]] = []
        self.seen = OutputCounts(MOST_OUTPUT)
        """Output of this driver by centisecond, as far as it was noted here."""
        self._latency: dict[str, Histogram] = {}
        self._epochs: set[int] = set()
        self._ordered = (self.earlier.parallelism, self.earlier.placement)

    @property
    def outlives_the_driver(self) -> bool:
        return self._file is not None

    def begin(self, start_ms: int, first: First) -> None:
        self.earlier.start_ms, self.earlier.first = start_ms, first
        self._write("begun", start_ms=start_ms, first=to_json(first))

    def killed(self, at_ms: int, report: ActionReport, at_s: float) -> None:
        """Written by the process that killed the driver."""
        self._write("killed", at_ms=at_ms)
        self.acted(report, (at_s, at_s))

    def left(self, at_ms: int) -> None:
        """Written by a driver that ends so that another one continues."""
        self._write("killed", at_ms=at_ms, why=STARTED_AGAIN)

    def driver_is_up(self, committed_rows: int, now_ms: int) -> None:
        """Record what the end of the previous driver cost, which is known once this one runs."""
        earlier = self.earlier
        if earlier.killed_ms is None:
            return
        again = sum(n for t, n in earlier.output.items() if earlier.planned_ms and t * STEP_MS >= earlier.planned_ms)
        restart = RestartReport(
            (earlier.killed_ms - earlier.start_ms) / 1000, earlier.killed_why, (now_ms - earlier.killed_ms) / 1000,
            max(0, earlier.read - committed_rows), again,
        )  # fmt: skip
        earlier.restarts.append(restart)
        earlier.killed_ms = None
        self._write("restart", **asdict(restart))

    def acted(self, report: ActionReport, window: Window) -> None:
        with self._lock:
            self._actions.append((report, window))
        self._write("action", report=asdict(report), window=list(window))

    def ordered(self, parallelism: Mapping[str, int], placement: Placement) -> None:
        """Written only when it has changed: it is polled, because a controller does not tell this process."""
        if (dict(parallelism), placement) == self._ordered:
            return
        self._ordered = (dict(parallelism), placement)
        self._write("ordered", parallelism=dict(parallelism), placement=to_json(placement))

    def restarted(self, restart: RestartReport) -> None:
        self._write("restart", **asdict(restart))

    def saw(
        self, new: Mapping[int, int], latency: Mapping[str, Histogram], read_rows: int, planned_ms: int | None
    ) -> None:
        """Rows read of this driver so far, and of its output what differs from ``seen``."""
        self._latency = dict(latency)
        self.seen.update(new)
        if planned_ms is not None:
            self._epochs.add(planned_ms)
        if self._file is not None:
            times = {c: [dict(h.rows), h.sum_ms, h.max_ms] for c, h in latency.items()}
            self._write(
                "saw", output=new, latency=times, read=read_rows, planned_ms=planned_ms, epochs=len(self._epochs)
            )

    @property
    def output(self) -> dict[int, int]:
        """Output rows by centisecond since 1970, of all drivers, over the last day."""
        whole = OutputCounts(MOST_OUTPUT)
        for counts in (self.earlier.output, self.seen):
            whole.add(counts)
        return whole.as_dict()

    @property
    def rows_out(self) -> int:
        """Of all drivers, since the run's begin."""
        return self.earlier.rows_out + self.seen.total_ever

    @property
    def latency(self) -> dict[str, Histogram]:
        """By clock, of all output rows, also those of earlier drivers."""
        return {c: self.earlier.latency[c] + self._latency.get(c, Histogram()) for c in CLOCKS}

    def actions(self) -> list[tuple[ActionReport, Window]]:
        """Of all drivers, in the order of their seconds."""
        with self._lock:
            return sorted([*self.earlier.actions, *self._actions], key=lambda a: a[0].at_s)

    def _write(self, kind: str, **fields: Any) -> None:
        if self._file is not None:
            with self._lock:
                self._file.write(json.dumps({"kind": kind, **fields}) + "\n")
                self._file.flush()


def read(path: Path) -> EarlierDrivers:
    earlier = EarlierDrivers()
    driver = OutputCounts(MOST_OUTPUT)  # output of the driver whose lines are being read
    times: dict[str, Histogram] = {}
    epochs = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            noted = json.loads(line)
        except ValueError:
            continue  # the last line of a driver that was killed while writing it
        kind = noted.pop("kind")
        if kind == "begun":
            earlier.start_ms, earlier.first = noted["start_ms"], from_json(First, noted["first"])
            earlier.placement = earlier.first.placement
        elif kind == "action":
            report = ActionReport(**{**noted["report"], "did": tuple(noted["report"]["did"])})
            earlier.actions.append((report, (noted["window"][0], noted["window"][1])))
        elif kind == "restart":
            earlier.restarts.append(RestartReport(**noted))
        elif kind == "ordered":
            earlier.parallelism, earlier.placement = noted["parallelism"], from_json(Placement, noted["placement"])
        elif kind == "saw":
            driver.update({int(t): rows for t, rows in noted["output"].items()})
            times = {
                c: Histogram({int(b): n for b, n in rows.items()}, total, largest)
                for c, (rows, total, largest) in noted["latency"].items()
            }
            # After a restart only committed rows count as read, so the number falls; the largest is the total.
            earlier.read = max(earlier.read, noted["read"])
            earlier.planned_ms, epochs = noted["planned_ms"] or earlier.planned_ms, noted["epochs"]
        elif kind == "killed":
            earlier.killed_ms, earlier.killed_why = noted["at_ms"], noted.get("why", DRIVER_KILLED)
            _add(earlier, driver, times, epochs)
            driver, times, epochs = OutputCounts(MOST_OUTPUT), {}, 0
    _add(earlier, driver, times, epochs)
    return earlier


def _add(earlier: EarlierDrivers, driver: OutputCounts, times: Mapping[str, Histogram], epochs: int) -> None:
    earlier.epochs += epochs
    earlier.latency = {c: h + times.get(c, Histogram()) for c, h in earlier.latency.items()}
    earlier.output.add(driver)
    earlier.rows_out += driver.total_ever
