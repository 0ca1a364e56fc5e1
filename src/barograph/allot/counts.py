"""How many nodes each topology gets when there are too few: SPS and DPS (Chakraborty). Counts only, no names.

Exact arithmetic. Rounding is half up; ties go to the first listed; nodes given in excess are taken back from the
smallest fraction, last listed first.

SD: nodes a topology desires. SM: the fewest it can do with (SPS). C: nodes of the cluster. ST: sum of all SD.
X = min(C, ST): nodes to give. SP: sum of SD of one priority level. Level 1 is highest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from barograph.model.checks import require, require_whole


@dataclass(frozen=True, slots=True)
class Given:
    """given: nodes of each topology, as listed. starved: positions of those that get none. idle: nodes left over."""

    given: tuple[int, ...]
    starved: tuple[int, ...]
    idle: int

    @staticmethod
    def of(nodes: int, counts: Iterable[int]) -> "Given":
        given = tuple(counts)
        return Given(given, tuple(i for i, n in enumerate(given) if n == 0), nodes - sum(given))


def sps(nodes: int, desired: Sequence[int], minimum: Sequence[int], level: Sequence[int]) -> Given:
    """Static priorities: no topology starves while the cluster has enough nodes for the sum of all minimums.

    Level after level: PF = round(X_left * SP / ST_left) nodes for the level, cn = round(PF * SD / SP) for each of its
    topologies, within [SM, SD], with the SMs of all lower levels set aside; then topped up to PF by the largest
    fraction, so that no lower level overtakes it. The last level takes the rest.
    """
    _check(nodes, desired, level)
    require(len(minimum) == len(desired), f"there are {len(desired)} desired numbers and {len(minimum)} minimums")
    for i, (least, most) in enumerate(zip(minimum, desired, strict=True)):
        require_whole(f"minimum of topology {i}", least)
        require(least <= most, f"minimum {least} of topology {i} is above its desired {most}")
    if nodes <= sum(minimum):
        return Given.of(nodes, _minimums(nodes, minimum, level))
    given = [0] * len(desired)
    left, wanted_left, aside = min(nodes, sum(desired)), sum(desired), sum(minimum)
    for members in _by_level(level):
        wanted = sum(desired[i] for i in members)
        aside -= sum(minimum[i] for i in members)
        fair = _half_up(Fraction(left * wanted, wanted_left))
        exact = {i: Fraction(fair * desired[i], wanted) for i in members}
        for i in members:
            given[i] = min(max(_half_up(exact[i]), minimum[i]), desired[i])
        _take_back(given, exact, {i: minimum[i] for i in members}, left - aside)
        _top_up(given, exact, {i: desired[i] for i in members}, min(fair, left - aside))
        left -= sum(given[i] for i in members)
        wanted_left -= wanted
    return Given.of(nodes, given)


def dps(nodes: int, desired: Sequence[int], level: Sequence[int]) -> Given:
    """Dynamic priorities: a level is served in full before the next gets any, so a lower one may starve for a while.

    P = min(X, SP) nodes for the level, round(P * SD / SP) for each of its topologies, corrected to a total of P.
    """
    _check(nodes, desired, level)
    given = [0] * len(desired)
    left = min(nodes, sum(desired))
    for members in _by_level(level):
        wanted = sum(desired[i] for i in members)
        here = min(left, wanted)
        exact = {i: Fraction(here * desired[i], wanted) for i in members}
        for i in members:
            given[i] = _half_up(exact[i])
        _take_back(given, exact, dict.fromkeys(members, 0), here)
        _top_up(given, exact, {i: desired[i] for i in members}, here)
        left -= here
    return Given.of(nodes, given)


def _check(nodes: int, desired: Sequence[int], level: Sequence[int]) -> None:
    require_whole("nodes", nodes, 1)
    require(len(desired) > 0, "there is no topology to give nodes to")
    require(len(level) == len(desired), f"there are {len(desired)} desired numbers and {len(level)} levels")
    for i, wanted in enumerate(desired):
        require_whole(f"desired of topology {i}", wanted, 1)
    for i, value in enumerate(level):
        require_whole(f"level of topology {i}", value, 1)


def _by_level(level: Sequence[int]) -> list[list[int]]:
    return [[i for i, value in enumerate(level) if value == one] for one in sorted(set(level))]


def _minimums(nodes: int, minimum: Sequence[int], level: Sequence[int]) -> list[int]:
    """Minimums by level, then as listed; a minimum that does not fit any more is skipped."""
    given = [0] * len(minimum)
    for i in sorted(range(len(minimum)), key=lambda i: level[i]):
        if minimum[i] <= nodes:
            given[i] = minimum[i]
            nodes -= minimum[i]
    return given


def _half_up(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


def _take_back(given: list[int], exact: dict[int, Fraction], least: dict[int, int], most_in_total: int) -> None:
    """Reduce to the total, from the topology that was rounded up most; ties: the last listed."""
    while sum(given[i] for i in exact) > most_in_total:
        i = min((i for i in exact if given[i] > least[i]), key=lambda i: (exact[i] - given[i], -i))
        given[i] -= 1


def _top_up(given: list[int], exact: dict[int, Fraction], most: dict[int, int], least_in_total: int) -> None:
    """Raise to the total, for the topology that was rounded down most; ties: the first listed."""
    while sum(given[i] for i in exact) < least_in_total:
        i = min((i for i in exact if given[i] < most[i]), key=lambda i: (given[i] - exact[i], i))
        given[i] += 1
