"""Whether every row was counted once. Shortfalls and excesses are summed by key, so that one cannot hide the other."""

from dataclasses import dataclass

from barograph.workloads.keyed_counts import KeyedCounts


@dataclass(frozen=True, slots=True)
class Verdict:
    """In rows of the result. checksum_ok: the rows that were counted are the rows that were due."""

    due: int
    counted: int
    lost: int
    counted_twice: int
    checksum_ok: bool

    @property
    def exact(self) -> bool:
        return self.lost == 0 and self.counted_twice == 0 and self.checksum_ok


def judge(due: KeyedCounts, counted: KeyedCounts) -> Verdict:
    lost = twice = 0
    for key in {*due.occurrences, *counted.occurrences}:
        missing = due.occurrences.get(key, 0) - counted.occurrences.get(key, 0)
        lost += max(0, missing)
        twice += max(0, -missing)
    return Verdict(due.total, counted.total, lost, twice, not due.faults(counted))
