"""The table of the demonstration."""

import re
from typing import Any

from barograph.experiments.demo import HEAD, line

REPORT: dict[str, Any] = {
    "policy": "adaptive",
    "latency_ms": {"due": {"mean": 7.0, "p99": 20.0}, "record": {"mean": 9.0, "p99": 30.0}},
    "rows": {"late": 0},
    "cpu_core_s": {"reserved": 4.0, "used": 2.0},
    "nodes_used": {"mean": 1.5},
    "moves": 1,
    "rescales": 2,
}


def test_each_figure_stands_under_its_name() -> None:
    kinds, names = HEAD.splitlines()
    told = line(REPORT)
    ends = [found.end() for found in re.finditer(r"\S+", names)]
    assert [told[:end].split()[-1] for end in ends[1:]] == [
        "7.0",
        "20",
        "9.0",
        "30",
        "0",
        "4.0",
        "2.0",
        "1.5",
        "1",
        "2",
    ]
    assert kinds.index("by column") < ends[2] < kinds.index("by record time") < ends[4]
