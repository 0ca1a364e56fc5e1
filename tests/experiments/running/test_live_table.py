"""What a run shows each second, and what its report keeps of it: both kinds of latency, each by its name."""

from dataclasses import replace
from io import StringIO

from barograph.experiments.running.live_table import LiveLine, LiveTable, by_second
from barograph.model import Latency

LINE = LiveLine(
    3.0, 1000.0, 990.0, 7900.0, 10, 2, Latency(8.0, 7.0, 20.0, 21.0, 22.0), Latency(11.0, 9.0, 31.0, 32.0, 33.0),
    {"node-1": ["split/0", "split/1"], "node-2": []},
)  # fmt: skip


def shown(*lines: LiveLine) -> list[str]:
    stream = StringIO()
    table = LiveTable(stream)
    for line in lines:
        table.show(line)
    return stream.getvalue().splitlines()


def test_both_latencies_stand_under_their_names() -> None:
    kinds, names, line = shown(LINE)
    for kind, p50, p99 in (("by column", "7", "20"), ("by record time", "9", "31")):
        end = kinds.index(kind) + len(kind)
        assert names[end - 15 : end].split() == ["p50", "p99"]
        assert line[end - 15 : end].split() == [p50, p99]
    assert line.endswith("node-1: split 0,1  node-2: -")
    assert names.index("epoch") + len("epoch") == line.index("  node-1")


def test_a_latency_that_is_not_known_is_a_dash() -> None:
    *_, line = shown(replace(LINE, by_column=None))
    assert line.split()[5:9] == ["-", "-", "9", "31"]


def test_the_report_has_both_second_by_second() -> None:
    found = by_second([LINE, replace(LINE, by_record=None)])
    assert (found["column_p50_ms"], found["column_p99_ms"]) == ([7.0, 7.0], [20.0, 20.0])
    assert (found["record_p50_ms"], found["record_p99_ms"]) == ([9.0, None], [31.0, None])
