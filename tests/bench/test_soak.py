"""The soak's figures: growth from a third of its time to its end, and which bars are missed."""

import pytest

from barograph.experiments.verdict import Verdict
from bench import soak

WELL = {"all": {"growth": 1.01}, "driver_python": {"growth": 1.0}, "driver_java": {"growth": 1.04}}
EXACT = Verdict(10, 10, 0, 0, True)


def test_growth_is_from_a_third_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "SECONDS", 1800.0)
    samples = [(t, {"driver_python": 500.0 if t < 600 else 100.0 + t / 60}) for t in map(float, range(0, 1800, 5))]
    assert soak.resident(samples) == {"driver_python": {"early": 111, "late": 128, "growth": 1.153}}
    assert soak.resident(samples[:130]) == {}, "no end, no growth"


MISSED = {
    "nothing": (EXACT, [], 4, [], WELL, []),
    "rows": (Verdict(10, 9, 1, 0, False), [], 4, [], WELL, ["exact"]),
    "a hole": (EXACT, ["entries 3 to 4 are missing"], 4, [], WELL, ["holes in the history"]),
    "downtime that is not marked": (EXACT, [], 2, [], WELL, ["marked gaps for each controller killed"]),
    "a process": (EXACT, [], 4, ["process 7"], WELL, ["left over"]),
    "memory": (EXACT, [], 4, [], {**WELL, "driver_java": {"growth": 1.06}}, ["growth of driver_java"]),
}


@pytest.mark.parametrize("case", MISSED)
def test_bars(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict, holes, gaps, left, memory, missed = MISSED[case]
    monkeypatch.setattr(soak, "SECONDS", 1800.0)
    found = soak.bars_of(verdict, {"holes": holes, "gaps_marked": gaps}, left, 3, memory)
    assert [b.name for b in found if not b.met] == missed
    monkeypatch.setattr(soak, "SECONDS", 300.0)
    assert len(soak.bars_of(verdict, {"holes": holes, "gaps_marked": gaps}, left, 3, memory)) == len(found) - 3
