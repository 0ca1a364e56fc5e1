"""Whether every row was counted once: sums of shortfalls and excesses by word, so that one cannot hide the other."""

from dataclasses import dataclass

from barograph.workloads.truth import WordTruth


@dataclass(frozen=True, slots=True)
class Verdict:
    """In words. checksum_ok: the words that were counted are the very ones that were due."""

    due: int
    counted: int
    lost: int
    counted_twice: int
    checksum_ok: bool

    @property
    def exact(self) -> bool:
        return self.lost == 0 and self.counted_twice == 0 and self.checksum_ok


def judge(due: WordTruth, counted: WordTruth) -> Verdict:
    lost = twice = 0
    for word in {*due.occurrences, *counted.occurrences}:
        missing = due.occurrences.get(word, 0) - counted.occurrences.get(word, 0)
        lost += max(0, missing)
        twice += max(0, -missing)
    return Verdict(due.words, counted.words, lost, twice, not due.faults(counted))
