"""What a restarted query reads again is committed once, when it is through, however often it dies meanwhile."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

from barograph.engines.spark.bridge.reports import LifeReport
from barograph.engines.spark.bridge.telemetry import EpochSeen
from barograph.engines.spark.query.early_commit import CALM_S, LOOK_S, EarlyCommit
from barograph.engines.spark.query.replayed import Replayed
from barograph.model import Instance


@dataclass
class Epochs:
    """Epochs with the rows that their two sources have read."""

    seen: list[EpochSeen] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)

    def put(self, run: str, epoch: int, *rows: int) -> None:
        self.seen = [e for e in self.seen if (e.run, e.epoch) != (run, epoch)]
        lives = {
            Instance("t", "source", i): cast(LifeReport, SimpleNamespace(rows_read=read)) for i, read in enumerate(rows)
        }
        self.seen.append(EpochSeen(run, epoch, 0, 1, lives=lives))

    def refresh(self) -> None: ...

    def present(self, _topology: str) -> EpochSeen | None:
        return self.seen[-1] if self.seen else None

    def epochs(self, _topology: str) -> list[EpochSeen]:
        return self.seen

    def end_epoch(self, _topology: str) -> None:
        self.cuts.append(self.seen[-1].epoch)


def test_without_a_death_nothing_is_cut() -> None:
    engine = Epochs()
    early = EarlyCommit(engine, "t")
    engine.put("a", 0, 1000, 1000)
    assert early.look("a") == CALM_S
    assert engine.cuts == []


def test_it_is_cut_once_when_all_is_read_again() -> None:
    engine = Epochs()
    early = EarlyCommit(engine, "t")
    engine.put("a", 3, 600, 400)
    early.died("a", Replayed(3, 1000, 0))
    assert early.look("b") == LOOK_S  # the next run has planned nothing yet
    engine.put("b", 3, 500, 400)
    assert early.look("b") == LOOK_S
    assert engine.cuts == []
    engine.put("b", 3, 600, 400)
    assert early.look("b") == CALM_S
    engine.put("b", 4, 5000, 5000)
    assert early.look("b") == CALM_S
    assert engine.cuts == [3]


def test_a_run_that_dies_before_it_is_through_leaves_the_rest_to_the_next() -> None:
    engine = Epochs()
    early = EarlyCommit(engine, "t")
    engine.put("a", 3, 1000)
    early.died("a", Replayed(3, 1000, 0))
    engine.put("b", 3, 300)
    early.died("b", Replayed(3, 300, 0))
    engine.put("c", 3, 999)
    assert early.look("c") == LOOK_S
    engine.put("c", 3, 1000)
    assert early.look("c") == CALM_S
    assert engine.cuts == [3]


def test_what_ended_by_itself_meanwhile_is_not_read_again() -> None:
    engine = Epochs()
    early = EarlyCommit(engine, "t")
    engine.put("a", 3, 1000)
    early.died("a", Replayed(3, 1000, 0))
    engine.put("b", 3, 700)
    engine.put("b", 4, 100)
    assert early.look("b") == LOOK_S
    early.died("b", Replayed(4, 100, 0))
    engine.put("c", 4, 299)
    assert early.look("c") == LOOK_S
    engine.put("c", 4, 300)
    assert early.look("c") == CALM_S
    assert engine.cuts == [4]


def test_it_is_not_cut_where_an_epoch_has_just_committed_all() -> None:
    engine = Epochs()
    early = EarlyCommit(engine, "t")
    engine.put("a", 3, 1000)
    early.died("a", Replayed(3, 1000, 0))
    engine.put("b", 3, 1200)
    engine.put("b", 4, 10)
    assert early.look("b") == CALM_S
    assert engine.cuts == []
