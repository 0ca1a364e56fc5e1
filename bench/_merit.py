"""Which of several runs of one scenario is best: late rows, then mean complete time, then CPU allotted."""

from collections.abc import Sequence
from dataclasses import dataclass

from barograph.policies import DEFAULT

EQUAL_WITHIN = 1.10


@dataclass(frozen=True, slots=True)
class Run:
    policy: str
    late_rows: float
    mean_ms: float
    p99_ms: float
    cpu_allotted_s: float
    cpu_used_s: float
    nodes_mean: float
    moves: int
    reconfigurations: int
    lost_rows: float


def ranked(runs: Sequence[Run]) -> list[Run]:
    """Best first. Fewest late rows; of those, who is within 10 % of the best mean is equal; of those, least CPU."""
    left = list(runs)
    order: list[Run] = []
    while left:
        fewest = min(round(r.late_rows) for r in left)
        punctual = [r for r in left if round(r.late_rows) == fewest]
        quickest = min(r.mean_ms for r in punctual)
        equal = [r for r in punctual if r.mean_ms <= EQUAL_WITHIN * quickest]
        best = min(equal, key=lambda r: (r.cpu_allotted_s, r.mean_ms, r.policy))
        order.append(best)
        left.remove(best)
    return order


def why_not(mine: Run, best: Run) -> str:
    """By which measure the best is ahead, in numbers, and what it pays for it."""
    if round(mine.late_rows) != round(best.late_rows):
        lost = f"{mine.late_rows:,.0f} late rows against {best.late_rows:,.0f}"
    elif mine.mean_ms > EQUAL_WITHIN * best.mean_ms:
        lost = f"mean complete time {mine.mean_ms:,.1f} ms against {best.mean_ms:,.1f} ms"
    else:
        return (
            f"{best.policy} is as quick and allots {best.cpu_allotted_s:,.0f} CPU-s against {mine.cpu_allotted_s:,.0f}"
        )
    ratio = best.cpu_allotted_s / mine.cpu_allotted_s if mine.cpu_allotted_s else 0.0
    nodes = f"{best.nodes_mean:.1f} nodes ({DEFAULT} on {mine.nodes_mean:.1f})"
    return f"{lost} of {best.policy}, which allots {ratio:.1f} times the CPU on {nodes}"
