"""One log line for each decision: what changes, why in numbers, how long it paused, and what came of it.

A decision that changes something is logged at INFO. So is one that is held back, refused or only advised, the first
time; the same again, and a cycle that changes nothing, is logged at DEBUG. Limits and epoch lengths that are only
advised differ a little from cycle to cycle: they are the same advice. It decides nothing; the history has it all.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barograph.control.node_pool import NodeOrders
from barograph.engines.reduced import applied_part
from barograph.logs import FIELDS
from barograph.model import Cycle, Instance, Reason, ReasonCode, Refusal

log = logging.getLogger(__name__)

HOLDS = frozenset(
    {
        ReasonCode.FROZEN, ReasonCode.COOLDOWN, ReasonCode.AFTER_ROLLBACK, ReasonCode.WOULD_RETURN,
        ReasonCode.BUDGET_USED_UP, ReasonCode.FEWER_TOO_EARLY, ReasonCode.SEATS_HELD, ReasonCode.WAITS_FOR_QUIET,
        ReasonCode.WAITS_FOR_SEATS, ReasonCode.FIGURES_STALE, ReasonCode.MOST_INSTANCES, ReasonCode.LEAST_INSTANCES,
        ReasonCode.EXCLUDED_FROM_SCALING, ReasonCode.CPU_QUOTA, ReasonCode.WORKER_QUOTA, ReasonCode.WORKER_QUOTA_SHORT,
        ReasonCode.FROZEN_PERIOD, ReasonCode.AFTER_LOSS,
    }
)  # fmt: skip
EPOCHS = frozenset(code for code in ReasonCode if code.value.startswith("epoch-"))
NODES = frozenset(
    {ReasonCode.NODE_FETCHED, ReasonCode.SPARE_NODE_FETCHED, ReasonCode.RELEASE_DISABLED, ReasonCode.NODE_RELEASED}
)
# Said once, whether or not anything changes.
SAID = frozenset(
    {
        ReasonCode.TARGET_HELD,
        ReasonCode.TARGET_MISSED,
        ReasonCode.TARGET_BLIND,
        ReasonCode.HOT_INSTANCE,
        ReasonCode.ONE_KEY_TOO_MUCH,
        ReasonCode.NOT_JUDGED,
    }
)
# Whatever else a cycle does, these matter.
ALWAYS = EPOCHS | NODES | SAID
ALWAYS |= {ReasonCode.ROLLED_BACK, ReasonCode.NEW_LEVELS, ReasonCode.NOT_PLACED}
_MOST_NAMED = 3  # moves that a line names; it counts the others


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """One decision. topologies: those it is about; all if it is about none in particular.

    limits: how many CPU limits differ from those before. epochs: topologies that get another length. pause_s: from the
    order until the change was committed; None if nothing had to be. outcome: applied, refused or advised. left_out:
    what the engine cannot do, while it did the rest; so are nodes that it did not release or fetch as ordered.
    """

    topologies: tuple[str, ...]
    moves: tuple[str, ...]
    rescales: tuple[str, ...]
    cuts: tuple[str, ...]
    limits: int
    epochs: tuple[str, ...]
    released: tuple[str, ...]
    fetched: tuple[str, ...]
    held_back: tuple[tuple[str, str], ...]
    reasons: tuple[Reason, ...]
    pause_s: float | None
    outcome: str
    refused: tuple[Refusal, ...]
    left_out: tuple[Refusal, ...]

    @property
    def changes(self) -> bool:
        return bool(
            self.moves or self.rescales or self.cuts or self.limits or self.epochs or self.released or self.fetched
        )

    def fields(self) -> dict[str, object]:
        """What a JSON line has besides the message."""
        return {
            "topologies": list(self.topologies),
            "moves": len(self.moves),
            "rescales": list(self.rescales),
            "cuts": list(self.cuts),
            "limits": self.limits,
            "epochs": list(self.epochs),
            "released": list(self.released),
            "fetched": list(self.fetched),
            "held_back": [{"about": about, "code": code} for about, code in self.held_back],
            "reasons": [{"about": r.about, "code": r.code.value, "numbers": dict(r.numbers)} for r in self.reasons],
            "pause_s": self.pause_s,
            "outcome": self.outcome,
            "refused": [{"what": r.what, "code": r.code.value} for r in self.refused],
            "left_out": [{"what": r.what, "code": r.code.value} for r in self.left_out],
        }

    def text(self) -> str:
        pieces = [", ".join(self._what()) or "no change"]
        if self.held_back:
            pieces.append("held back: " + ", ".join(f"{about} by {code}" for about, code in self.held_back))
        if self.reasons:
            pieces.append("because " + ", ".join(_with_numbers(r) for r in self.reasons))
        if self.pause_s is not None:
            pieces.append(f"pause {self.pause_s:.2f} s")
        refused = _told(self.refused)
        if self.changes or refused:
            pieces.append(f"refused: {refused}" if refused else self.outcome)
        if self.left_out:
            pieces.append(f"left out: {_told(self.left_out)}")
        return f"{', '.join(self.topologies) or 'no topology'}: {'; '.join(pieces)}"

    def _what(self) -> list[str]:
        found = []
        if self.moves:
            named = ", ".join(self.moves[:_MOST_NAMED]) + (", ..." if len(self.moves) > _MOST_NAMED else "")
            found.append(f"{_count(len(self.moves), 'move')} ({named})")
        found += [f"rescale {text}" for text in self.rescales]
        if self.cuts:
            found.append(_count(len(self.cuts), "cut"))
        if self.limits:
            found.append(f"{_count(self.limits, 'limit')} changed")
        if self.epochs:
            found.append(f"new epoch length of {', '.join(self.epochs)}")
        found += [f"release {node}" for node in self.released]
        return found + [f"fetch {node}" for node in self.fetched]


def describe(cycle: Cycle, orders: NodeOrders, limits_before: Mapping[Instance, float]) -> DecisionLine:
    """limits_before: the CPU limits that were in force when this was decided."""
    now, plan, outcome = cycle.snapshot, applied_part(cycle), cycle.outcome
    moved = [(i, now.placement.get(i), s) for i, s in plan.placement.slots.items() if now.placement.get(i) != s]
    before = {(t.name, o.name): o.parallelism for t in now.topologies for o in t.operators}
    limited = [i for i, pct in plan.limits_pct.items() if limits_before.get(i) != pct]
    refused = () if outcome is None else outcome.refused
    left_out = () if outcome is None else outcome.left_out
    kept = {r.node for r in left_out if r.node}
    epochs = tuple(r.about for r in plan.reasons if r.code in EPOCHS)
    held_back = tuple((r.about, r.code.value) for r in plan.reasons if r.code in HOLDS)
    running = tuple(t.name for t in now.topologies)
    concerned = {*plan.cuts, *epochs, *(r.topology for r in plan.rescales), *(i.topology for i in limited)}
    concerned |= {i.topology for i, _, _ in moved} | {about for about, _ in held_back}
    concerned |= {about.rpartition("/")[0] for about, _ in held_back}  # of an operator
    return DecisionLine(
        topologies=tuple([name for name in running if name in concerned] or running),
        moves=tuple(f"{i} to {s}" if a is None else f"{i} from {a} to {s}" for i, a, s in moved),
        rescales=tuple(
            f"{r.topology}/{r.operator} from {before.get((r.topology, r.operator), 0)} to {r.parallelism}"
            for r in plan.rescales
        ),
        cuts=plan.cuts,
        limits=len(limited),
        epochs=epochs,
        released=() if refused else tuple(n for n in orders.release if n not in kept),  # after a refused plan none is
        fetched=tuple(n for n in orders.fetch if n not in kept),
        held_back=held_back,
        reasons=_that_matter(cycle, bool(moved), limited),
        pause_s=None if outcome is None else outcome.order_to_commit_s,
        outcome="advised" if outcome is None else "refused" if refused else "applied",
        refused=refused,
        left_out=left_out,
    )


class NotableDecisions:
    """Which decisions of one loop are worth a line. limits_pct: the CPU limits that are in force."""

    def __init__(self) -> None:
        self.limits_pct: Mapping[Instance, float] = {}
        self._last: object = None
        self._advised: set[tuple[str, str]] = set()  # limits and epoch lengths of topologies

    def recall(self, cycles: Iterable[Cycle]) -> None:
        """Cycles of an earlier controller, oldest first: the limits that they set are in force."""
        for cycle in cycles:
            if cycle.outcome is None or cycle.outcome.ok:
                self.limits_pct = {**self.limits_pct, **applied_part(cycle).limits_pct}

    def take(self, cycle: Cycle, orders: NodeOrders) -> tuple[DecisionLine, bool]:
        """The next cycle: its line, and whether it is worth one."""
        line = describe(cycle, orders, self.limits_pct)
        self.recall([cycle])
        # Until it is applied, the same decision is made in each cycle, with other numbers.
        kinds = tuple((r.what, r.code) for r in (*line.refused, *line.left_out))
        said = tuple((r.about, r.code) for r in line.reasons if r.code in SAID)
        content = (line.moves, line.rescales, line.cuts, line.released, line.fetched, line.held_back, kinds, said)
        applied = line.changes and line.outcome == "applied"
        notable = applied or self._is_new_advice(cycle, line) or (any(content) and content != self._last)
        self._last = content
        return line, notable

    def _is_new_advice(self, cycle: Cycle, line: DecisionLine) -> bool:
        if cycle.outcome is not None:
            return False
        advised = {("limits", i.topology) for i in cycle.plan.limits_pct} | {("epochs", t) for t in line.epochs}
        new, self._advised = advised - self._advised, self._advised | advised
        return bool(new)


class DecisionLog:
    """Logs the decisions of one loop."""

    def __init__(self) -> None:
        self._notable = NotableDecisions()

    def recall(self, cycles: Iterable[Cycle]) -> None:
        """Cycles of an earlier controller, oldest first."""
        self._notable.recall(cycles)

    def log(self, cycle: Cycle, orders: NodeOrders) -> None:
        line, notable = self._notable.take(cycle, orders)
        level = logging.INFO if notable else logging.DEBUG
        if log.isEnabledFor(level):
            log.log(level, "%s", line.text(), extra={FIELDS: line.fields()})


def _that_matter(cycle: Cycle, moves: bool, limited: list[Instance]) -> tuple[Reason, ...]:
    """Why instances move or are rescaled, why limits changed, and what always matters; guards are told separately."""
    plan = applied_part(cycle)
    changed = {(r.topology, r.operator) for r in plan.rescales} | {(i.topology, i.operator) for i in limited}
    demands = [d.reason for d in cycle.demand.operators if (d.topology, d.operator) in changed and d.reason is not None]
    whole = moves or bool(plan.rescales or plan.cuts)
    planned = [r for r in plan.reasons if r.code in ALWAYS or (whole and r.code not in HOLDS | {ReasonCode.ONE_CUT})]
    return tuple(dict.fromkeys([*demands, *planned]))


def _told(refusals: Iterable[Refusal]) -> str:
    return ", ".join(f"{r.what} ({r.code.value}: {r.reason})" for r in refusals)


def _with_numbers(reason: Reason) -> str:
    numbers = " ".join(f"{name}={value:.4g}" for name, value in reason.numbers.items())
    return f"{reason.code.value} of {reason.about}" + (f" ({numbers})" if numbers else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
