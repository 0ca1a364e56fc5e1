"""What a headline is: a result that a paper states, beside ours of the same policy on the same set-up.

A paper's file lists the runs it needs (``Case``) and judges their results. Tolerances are the same for all papers:
orders exact, latencies within a factor of 2, percentages within 10 points, nodes and workers within 0.5.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from barograph.control.policy_in_sim import rehearse
from barograph.engines.sim import Result, find

FACTOR, POINTS, COUNT = 2.0, 10.0, 0.5


@dataclass(frozen=True, slots=True)
class Headline:
    """One line of the table. because: the cause where it is missed; one that is missed without a cause is a failure."""

    what: str
    stated: str
    ours: str
    met: bool
    because: str = ""

    @property
    def excused(self) -> bool:
        return self.met or bool(self.because)


@dataclass(frozen=True)
class Case:
    """One run of the simulator. key: what the paper's judge calls it. seconds: so much of its time; None: all of it."""

    key: str
    scenario: str
    policy: str
    options: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    grain: str | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Paper:
    """judge: gets the result of every case by its key."""

    name: str
    title: str
    cases: tuple[Case, ...]
    judge: Callable[[Mapping[str, Result]], Sequence[Headline]]


def run_case(case: Case) -> Result:
    scenario = find(case.scenario)
    if case.seconds is not None:
        scenario = replace(scenario, duration_s=case.seconds)
    return rehearse(scenario, case.policy, case.seed, options=case.options, grain=case.grain)


def check(paper: Paper) -> Sequence[Headline]:
    """All of a paper, one case after the other."""
    return paper.judge({case.key: run_case(case) for case in paper.cases})


def within_factor(
    what: str, stated: float, ours: float, unit: str = "ms", *, factor: float = FACTOR, because: str = ""
) -> Headline:
    """A latency, or anything else that is compared as a ratio."""
    met = stated / factor <= ours <= stated * factor
    return Headline(what, f"{stated:,.4g} {unit}", f"{ours:,.4g} {unit}", met, "" if met else because)


def within_points(
    what: str, stated_pct: float, ours_pct: float, *, points: float = POINTS, because: str = ""
) -> Headline:
    """A percentage."""
    met = abs(ours_pct - stated_pct) <= points
    return Headline(what, f"{stated_pct:+.1f} %", f"{ours_pct:+.1f} %", met, "" if met else because)


def within(what: str, stated: float, ours: float, unit: str = "", *, off: float = COUNT, because: str = "") -> Headline:
    """A number of nodes or workers."""
    met = abs(ours - stated) <= off
    return Headline(what, f"{stated:g} {unit}".strip(), f"{ours:.2f} {unit}".strip(), met, "" if met else because)


def in_order(what: str, ours: Mapping[str, float], stated: Sequence[str], *, because: str = "") -> Headline:
    """stated: names by rising value, as the paper has them. Equal values are no order."""
    values = [ours[name] for name in stated]
    met = all(a < b for a, b in pairwise(values))
    found = " < ".join(f"{name} {ours[name]:,.4g}" for name in sorted(ours, key=ours.__getitem__))
    return Headline(what, " < ".join(stated), found, met, "" if met else because)


def holds(what: str, stated: str, ours: str, met: bool, *, because: str = "") -> Headline:
    """Anything else, in words and numbers."""
    return Headline(what, stated, ours, met, "" if met else because)


def no_row_lost_or_repeated(results: Mapping[str, Result]) -> Headline:
    """Over all runs of a paper."""
    lost, again = (sum(getattr(r, name) for r in results.values()) for name in ("lost_rows", "replayed_rows"))
    found = f"{lost:g} lost, {again:g} repeated in {len(results)} runs"
    return holds("rows lost or repeated, in all runs", "0", found, lost == 0 and again == 0)
