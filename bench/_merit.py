"""Which of several runs of one scenario is best: late rows, then mean complete time, then CPU reserved."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from barograph.policy.registry import DEFAULT

EQUAL_WITHIN = 1.10


@dataclass(frozen=True, slots=True)
class Run:
    policy: str
    late_rows: float
    mean_ms: float
    p99_ms: float
    cpu_reserved_s: float
    cpu_used_s: float
    nodes_mean: float
    moves: int
    reconfigurations: int
    lost_rows: float


def ranked(runs: Sequence[Run]) -> list[Run]:
    """Best first. Fewest late rows; of those, runs within 10 % of the best mean are equal; of those, least CPU.

    Of runs that are equal in all three, the default comes first.
    """
    left = list(runs)
    order: list[Run] = []
    while left:
        fewest = min(round(r.late_rows) for r in left)
        punctual = [r for r in left if round(r.late_rows) == fewest]
        quickest = min(r.mean_ms for r in punctual)
        equal = [r for r in punctual if r.mean_ms <= EQUAL_WITHIN * quickest]
        best = min(equal, key=lambda r: (round(r.cpu_reserved_s), r.policy != DEFAULT, r.mean_ms, r.policy))
        order.append(best)
        left.remove(best)
    return order


def why_not(mine: Run, best: Run) -> str:
    """By which measure the best is ahead, and what it does differently, in numbers."""
    if round(mine.late_rows) != round(best.late_rows):
        lost = f"{mine.late_rows:,.0f} late rows against {best.late_rows:,.0f} of {best.policy}"
    elif mine.mean_ms > EQUAL_WITHIN * best.mean_ms:
        lost = f"mean complete time {mine.mean_ms:,.1f} ms against {best.mean_ms:,.1f} ms of {best.policy}"
    else:
        given = f"{best.cpu_reserved_s:,.0f} CPU-s against {mine.cpu_reserved_s:,.0f}"
        lost = f"{best.policy} is as quick ({best.mean_ms:,.1f} ms against {mine.mean_ms:,.1f}) and reserves {given}"
    return f"{lost}; {' and '.join(_otherwise(mine, best)) or 'it does so by its placement alone'}"


def _otherwise(mine: Run, best: Run) -> Iterator[str]:
    """What the best does differently."""
    if best.nodes_mean < mine.nodes_mean - 0.05:
        full = best.cpu_used_s / best.cpu_reserved_s if best.cpu_reserved_s else 0.0
        yield (
            f"it keeps all on {best.nodes_mean:.1f} nodes and uses {full:.0%} of them on average, "
            f"where {DEFAULT} keeps room to grow on {mine.nodes_mean:.1f}"
        )
    elif best.nodes_mean > mine.nodes_mean + 0.05:
        yield f"it spreads over {best.nodes_mean:.1f} nodes where {DEFAULT} keeps to {mine.nodes_mean:.1f}"
    if best.cpu_reserved_s > 1.02 * mine.cpu_reserved_s:
        ratio = best.cpu_reserved_s / mine.cpu_reserved_s if mine.cpu_reserved_s else float("inf")
        yield f"it reserves {ratio:.1f} times the CPU"
    if mine.reconfigurations > best.reconfigurations:
        yield f"it has {best.reconfigurations} reconfigurations where {DEFAULT} has {mine.reconfigurations}"
