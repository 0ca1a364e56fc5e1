"""The soak's figures: growth from its first third to its end, and which bars are missed."""

import pytest
from bench._soak.flow import Flow, read, write
from bench._soak.memory import growth

from barograph.experiments.verdict import Verdict
from bench import soak

EXACT = Verdict(10, 10, 0, 0, True)
WELL_S = {"executor": [1.0, 1.5, 4.0], "worker": [20.0], "master": [3.0], "stopped": [29.0], "driver": [40.0]}
WELL_MB = {"driver_python": {"growth": 1.0}, "driver_java": {"growth": 1.04}, "driver_heap": {"growth": 0.9}}


def test_growth_is_from_minute_15_to_the_last() -> None:
    samples = [(float(t), {"driver_python": 100.0 + t / 60, "driver_heap": 0.0}) for t in range(0, 3000, 5)]
    assert growth(samples, 3000.0) == {"driver_python": {"early": 116.5, "late": 148.5, "growth": 1.275}}
    assert growth(samples[:300], 3000.0) == {}, "no end, no growth"
    assert growth([], 3000.0) == {}


@pytest.mark.parametrize(
    ("recovery_s", "verdict", "holes", "left", "memory", "missed"),
    [
        (WELL_S, EXACT, 0, 0, WELL_MB, []),
        (WELL_S, Verdict(10, 9, 1, 0, False), 0, 0, WELL_MB, ["A: exact"]),
        ({**WELL_S, "executor": [1.0, 1.0, 5.1]}, EXACT, 0, 0, WELL_MB, ["A: worst executor"]),
        ({**WELL_S, "executor": [2.1, 2.1, 3.0]}, EXACT, 0, 0, WELL_MB, ["A: median executor"]),
        ({**WELL_S, "stopped": [31.0]}, EXACT, 0, 0, WELL_MB, ["A: worst stopped"]),
        ({**WELL_S, "master": [31.0]}, EXACT, 0, 0, WELL_MB, ["A: worst master"]),
        (WELL_S, EXACT, 1, 0, WELL_MB, ["A: holes in the history"]),
        (WELL_S, EXACT, 0, 1, WELL_MB, ["A: left over"]),
        (WELL_S, EXACT, 0, 0, {**WELL_MB, "driver_java": {"growth": 1.06}}, ["A: growth of driver_java"]),
    ],
)
def test_bars(
    recovery_s: dict[str, list[float]],
    verdict: Verdict,
    holes: int,
    left: int,
    memory: dict[str, dict[str, float]],
    missed: list[str],
) -> None:
    bars = soak.bars_of("A", recovery_s, verdict, holes, left, memory)
    assert [b.name for b in bars if not b.met] == missed


def test_what_the_driver_tells_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("flow")
    assert read(folder) is None
    flow = Flow(7, "run", 1.5, 2.5, ("0", "2"), 9, True, 100.0, (("lost executor 1", 1.2),))
    write(flow, folder)
    assert read(folder) == flow
