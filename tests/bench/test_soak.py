"""The soak's figures: growth from its first third to its end, which bars are missed, and what is left of a part that
did not come to its end."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench._soak.flow import Flow, read, write
from bench._soak.memory import growth
from bench.soak import Found

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
    ("found", "memory", "missed"),
    [
        (Found(WELL_S, verdict=EXACT), WELL_MB, []),
        (Found(WELL_S, verdict=Verdict(10, 9, 1, 0, False)), WELL_MB, ["A: exact"]),
        (Found(WELL_S, problems=["the faults: rows did not flow"]), WELL_MB, ["A: problems", "A: exact"]),
        (Found({**WELL_S, "executor": [1.0, 1.0, 5.1]}, verdict=EXACT), WELL_MB, ["A: worst executor"]),
        (Found({**WELL_S, "executor": [2.1, 2.1, 3.0]}, verdict=EXACT), WELL_MB, ["A: median executor"]),
        (Found({**WELL_S, "stopped": [31.0]}, verdict=EXACT), WELL_MB, ["A: worst stopped"]),
        (Found({**WELL_S, "master": [31.0]}, verdict=EXACT), WELL_MB, ["A: worst master"]),
        (Found(WELL_S, verdict=EXACT, holes=["5 is missing"]), WELL_MB, ["A: holes in the history"]),
        (Found(WELL_S, verdict=EXACT, left=["process 7"]), WELL_MB, ["A: left over"]),
        (
            Found(WELL_S, verdict=EXACT), {**WELL_MB, "driver_java": {"growth": 1.06}}, ["A: growth of driver_java"],
        ),
    ],
)  # fmt: skip
def test_bars(found: Found, memory: dict[str, dict[str, float]], missed: list[str]) -> None:
    assert [b.name for b in soak.bars_of("A", found, memory) if not b.met] == missed


def test_what_was_not_measured_meets_no_bar() -> None:
    found, unheaped = Found({**WELL_S, "disk": []}, verdict=EXACT), {"driver_python": {"growth": 1.0}}
    assert [b.name for b in soak.bars_of("B", found, unheaped, is_whole=True) if not b.met] == [
        "B: faults disk", "B: kinds of memory measured",
    ]  # fmt: skip
    assert all(b.met for b in soak.bars_of("B", found, None)), "a short part may have no time for all"


class StuckWorld:
    """Its rows do not flow again after the second fault, and its driver does not end in order."""

    cluster, nodes = SimpleNamespace(run=None), SimpleNamespace(problems=["node-2 did not come back"])
    seen: set[int] = set()  # noqa: RUF012

    def flow(self) -> Flow:
        return Flow(0, deaths=(("lost executor 1", 1.2),))

    def wait(self, *_: object) -> Flow:
        return self.flow()

    def finish(self) -> Verdict:
        raise RuntimeError("the driver ended with code 1")


def test_a_part_that_does_not_come_to_its_end_reports_what_was_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    took_s = [3.5]

    def executor(*_: object) -> tuple[float, str]:
        if not took_s:
            raise TimeoutError("rows after the kill of an executor did not happen within 180 s")
        return took_s.pop(), "killed an executor"

    @contextmanager
    def open_world(folder: Path, collect: bool) -> Iterator[StuckWorld]:
        assert not collect
        (folder / "driver.log").write_text("the driver's last words")
        yield StuckWorld()

    monkeypatch.setenv("BENCH_PART", "A")
    monkeypatch.setattr(soak, "KINDS", {"A": ("executor",)})
    monkeypatch.setattr(soak, "FAULTS", {"executor": executor})
    monkeypatch.setattr(soak, "CALM_S", 0.0)
    monkeypatch.setattr(soak, "open_world", open_world)
    monkeypatch.setattr(soak, "left_over", lambda *_: ["process 7"])
    assert soak.main() == 1
    out, err = capsys.readouterr()
    found = json.loads(out)["A"]
    assert found["recovery_s"] == {"executor": {"median": 3.5, "worst": 3.5, "count": 1}}
    assert found["rows"] is None and found["left_over"] == ["process 7"]
    assert [p.split(": ")[0] for p in found["problems"]] == [
        "the faults, during the fault executor", "the verdict", "the history",
    ]  # fmt: skip
    assert "did not happen within 180 s" in found["problems"][0]
    assert found["deaths_under_last_driver"] == [{"cause": "lost executor 1", "down_s": 1.2}]
    assert "the driver's last words" in err


def test_what_the_driver_tells_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("flow")
    assert read(folder) is None
    flow = Flow(7, "run", 1.5, 2.5, ("0", "2"), 9, True, 100.0, (("lost executor 1", 1.2),))
    write(flow, folder)
    assert read(folder) == flow
