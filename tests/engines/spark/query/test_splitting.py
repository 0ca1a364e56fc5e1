"""State is split over other instances, or left as it was; an unfinished repartition is repeated."""

import pytest

from barograph.engines.spark.query.repartition import TRIES, split_state


class Splitting:
    """Fails so many times; begun: whether the first failure left something unfinished."""

    def __init__(self, fails: int, begun: bool = True, undo: str = "") -> None:
        self.fails, self.begun, self.undo, self.did = fails, begun, undo, ""

    def repartition(self, checkpoint: str, count: int) -> str:
        assert (checkpoint, count) == ("there", 4)
        self.did += "r"
        self.fails -= 1
        return "" if self.fails < 0 else "an executor was lost"

    def unfinished_repartition(self, checkpoint: str) -> int:
        assert checkpoint == "there"
        return 4 if self.begun else 0

    def undo_repartition(self, checkpoint: str) -> str:
        assert checkpoint == "there"
        self.did += "u"
        return self.undo


CASES = {  # the engine, its calls, the result
    "at once": (Splitting(0), "r", ""),
    "after two failures": (Splitting(2), "rrr", ""),
    "never": (Splitting(99), "r" * TRIES + "u", "an executor was lost; the query goes on as it was"),
    "not even begun": (Splitting(99, begun=False), "ru", "an executor was lost; the query goes on as it was"),
    "nor undone": (Splitting(99, undo="disk full"), "r" * TRIES + "u", "lost; it could not be undone: disk full"),
}


@pytest.mark.parametrize("case", CASES)
def test_split(case: str) -> None:
    engine, did, said = CASES[case]
    why = split_state(engine, "there", 4, lambda _: False)
    assert engine.did == did
    assert why.endswith(said) and bool(why) == bool(said)


def test_a_query_that_is_stopped_does_not_wait() -> None:
    engine = Splitting(99)
    assert split_state(engine, "there", 4, lambda _: True).startswith("an executor was lost")
    assert engine.did == "ru"
