"""The table that a run shows while it runs: one line a second."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from barograph.model import Latency, Node, Snapshot

HEADER = (
    f"{'':>46} {'ms by column':>15} {'by record time':>15}\n"
    f"{'second':>6} {'due/s':>9} {'read/s':>9} {'out/s':>9} {'backlog':>9} {'p50':>7} {'p99':>7} {'p50':>7} {'p99':>7} "
    f"{'epoch':>5}  instances by node"
)


@dataclass(frozen=True, slots=True)
class LiveLine:
    """One second of a run. backlog_rows: by the load, which is known. seen_rows: the same as the engine sees it, which
    is what a policy goes by. all_read_rows: since the load's start. by_column, by_record: latencies from when a row is
    due, by its own time and by record times. None: unknown."""

    at_s: float
    due_rows_s: float
    read_rows_s: float | None
    out_rows_s: float | None
    backlog_rows: int | None
    epoch: int
    by_column: Latency | None
    by_record: Latency | None
    by_node: dict[str, list[str]]
    seen_rows: int | None = None
    all_read_rows: int | None = None


def by_second(lines: Sequence[LiveLine]) -> dict[str, list[float | None]]:
    """The numbers of a run's lines, column by column."""
    return {
        "at_s": [round(line.at_s, 3) for line in lines],
        "due_rows_s": [round(line.due_rows_s, 1) for line in lines],
        "read_rows_s": [line.read_rows_s for line in lines],
        "all_read_rows": [line.all_read_rows for line in lines],
        "backlog_rows": [line.backlog_rows for line in lines],
        "seen_backlog_rows": [line.seen_rows for line in lines],
        **_percentiles("column", [line.by_column for line in lines]),
        **_percentiles("record", [line.by_record for line in lines]),
    }


def _percentiles(kind: str, latencies: Sequence[Latency | None]) -> dict[str, list[float | None]]:
    return {
        f"{kind}_{name}_ms": [None if found is None else round(getattr(found, name), 1) for found in latencies]
        for name in ("p50", "p99")
    }


def by_node(now: Snapshot, nodes: Iterable[Node]) -> dict[str, list[str]]:
    """The instances on each node; nodes without instances are listed too."""
    found: dict[str, list[str]] = {n.name: [] for n in nodes}
    for instance, slot in sorted(now.placement.slots.items()):
        found[slot.node].append(f"{instance.operator}/{instance.index}")
    return found


class LiveTable:
    """Writes to a stream and repeats the header every twenty lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines = 0

    def say(self, text: str) -> None:
        print(f"-- {text}", file=self._stream, flush=True)

    def show(self, line: LiveLine) -> None:
        if self._lines % 20 == 0:
            print(HEADER, file=self._stream)
        self._lines += 1
        nodes = "  ".join(f"{node}: {_short(instances)}" for node, instances in line.by_node.items())
        known = ((line.by_column, "p50"), (line.by_column, "p99"), (line.by_record, "p50"), (line.by_record, "p99"))
        times = " ".join(f"{_ms(latency, percentile):>7}" for latency, percentile in known)
        print(
            f"{line.at_s:>6.0f} {line.due_rows_s:>9,.0f} {_rows(line.read_rows_s):>9} {_rows(line.out_rows_s):>9} "
            f"{_rows(line.backlog_rows):>9} {times} {line.epoch:>5}  {nodes}",
            file=self._stream,
            flush=True,
        )


def _rows(rows: float | None) -> str:
    return "-" if rows is None else f"{rows:,.0f}"


def _ms(latency: Latency | None, percentile: str) -> str:
    return "-" if latency is None else f"{getattr(latency, percentile):,.0f}"


def _short(instances: list[str]) -> str:
    """``split/0 split/1`` as ``split 0,1``."""
    groups: dict[str, list[str]] = {}
    for name, index in (i.split("/") for i in instances):
        groups.setdefault(name, []).append(index)

    return " ".join(f"{name} {','.join(groups[name])}" for name in groups) or "-"
