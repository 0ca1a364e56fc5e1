"""Which nodes are released because they are not needed, and which are fetched before they are needed. Pure.

A node is released when no instance was on it, or planned for it, for a grace time. Some idle nodes are kept as spares,
so that there is room at once for a burst or after the loss of a node. Released (asleep) nodes are fetched when the
spares are used up, or when the load forecast for the end of a fetch does not fit the present nodes. It places nothing
and knows no engine.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from barograph.config import default
from barograph.model import (
    Cycle,
    Demand,
    Node,
    Outcome,
    Reason,
    ReasonCode,
    RefusalCode,
    Slot,
    Snapshot,
    Worker,
    nodes_kept,
)
from barograph.model.checks import require_number, require_positive, require_whole

COMING_S = 60.0  # a fetched node that is not there after so long is no longer expected
# A node is released only if the others then need at most this part of what may be filled: else it would soon be
# fetched again.
EASY = 0.8
_LEARNED = 3  # how many of the last fetches are used to estimate how long one takes


@dataclass(frozen=True, slots=True)
class Upkeep:
    """release_after_s: the grace time; None: every node is kept. spare: idle nodes that are always kept.

    fill_pct: how much of the present CPU the forecast may need before more nodes are fetched. fetch_s: how long a fetch
    is assumed to take until one has been seen.
    """

    release_after_s: float | None
    spare: int = default("nodes.spare")
    fill_pct: float = default("nodes.fill")
    fetch_s: float = default("nodes.fetch")

    def __post_init__(self) -> None:
        if self.release_after_s is not None:
            require_number("nodes: release_after_s", self.release_after_s)
        require_whole("nodes: spare", self.spare)
        require_positive("nodes: fill_pct", self.fill_pct)
        require_positive("nodes: fetch_s", self.fetch_s)


@dataclass(frozen=True, slots=True)
class NodeOrders:
    release: tuple[str, ...] = ()
    fetch: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.release or self.fetch)

    def not_done(self, code: RefusalCode, why: str) -> Outcome:
        """The outcome where every node stays as it is."""
        return Outcome(left_out=nodes_kept(self.release, self.fetch, code, why))

    def without_releases(self) -> "NodeOrders":
        return NodeOrders(fetch=self.fetch, reasons=tuple(r for r in self.reasons if r.about not in self.release))


def keep_nodes(upkeep: Upkeep, history: Sequence[Cycle], cycle: Cycle, ahead: Demand) -> NodeOrders:
    """What to do about nodes once the cycle's plan is applied. ahead: what is needed at the end of a fetch."""
    now = cycle.snapshot
    if upkeep.release_after_s is None:
        why = "fetched: nodes are not to be released"
        return NodeOrders(
            fetch=_names(now.asleep),
            reasons=tuple(Reason(n.name, ReasonCode.RELEASE_DISABLED, why) for n in now.asleep),
        )
    coming = _coming(history, now)
    need = _Need.of(cycle.demand, ahead)
    used = _used(cycle)
    fetched = _to_fetch(upkeep, now, used, coming, need)
    if fetched or coming:
        return NodeOrders(fetch=_names(n for n, _ in fetched), reasons=tuple(r for _, r in fetched))
    released = _to_release(upkeep, upkeep.release_after_s, history, now, used, need)
    return NodeOrders(release=_names(n for n, _ in released), reasons=tuple(r for _, r in released))


def awake(now: Snapshot) -> Snapshot:
    """The cluster as if every node were fetched, so that demand is not bounded by the present nodes."""
    workers = (Worker(Slot(n.name, k), f"{n.name}-{k}", n.seats or 1) for n in now.asleep for k in range(n.slots))
    return replace(now, nodes=(*now.nodes, *now.asleep), workers=(*now.workers, *workers), asleep=())


def fetch_time_s(upkeep: Upkeep, history: Sequence[Cycle]) -> float:
    """The longest of the last fetches: from the last cycle in which a node was asleep to the first with the node."""
    took: list[float] = []
    left: dict[str, float] = {}
    for cycle in history:
        now = cycle.snapshot
        left |= {n.name: now.at_s for n in now.asleep}
        came = [n.name for n in now.nodes if n.name in left]
        took += [now.at_s - left.pop(name) for name in came]
    return max(took[-_LEARNED:], default=upkeep.fetch_s)


@dataclass(frozen=True, slots=True)
class _Need:
    cpu_pct: float
    seats: int

    @staticmethod
    def of(*demands: Demand) -> "_Need":
        return _Need(
            max(sum(sum(o.shares_pct) for o in d.operators) for d in demands),
            max(sum(o.parallelism for o in d.operators) for d in demands),
        )

    def short_pct(self, fill_pct: float, nodes: Iterable[Node]) -> float:
        """CPU that is missing on these nodes; infinite where only seats are missing."""
        there = list(nodes)
        missing = self.cpu_pct * 100.0 / fill_pct - sum(n.cpu_pct for n in there)
        if missing > 0:
            return missing
        seats = [n.slots * n.seats for n in there if n.seats is not None]
        return float("inf") if len(seats) == len(there) and self.seats > sum(seats) else 0.0


def _names(nodes: Iterable[Node]) -> tuple[str, ...]:
    return tuple(n.name for n in nodes)


def _used(cycle: Cycle) -> set[str]:
    """Nodes that hold an instance, or will by the plan."""
    return {s.node for p in (cycle.snapshot.placement, cycle.plan.placement) for s in p.slots.values()}


def _coming(history: Sequence[Cycle], now: Snapshot) -> tuple[Node, ...]:
    """Nodes that are being fetched: asleep a moment ago, no longer asleep, and not there yet."""
    there = {n.name for n in (*now.nodes, *now.asleep)}
    recent = [c.snapshot for c in history if c.snapshot.at_s > now.at_s - COMING_S]
    found: dict[str, Node] = {}
    for snapshot in recent:  # a node that came and is gone again has failed and is not expected
        found |= {n.name: n for n in snapshot.asleep if n.name not in there}
        found = {name: n for name, n in found.items() if name not in {m.name for m in snapshot.nodes}}
    return tuple(found.values())


def _to_fetch(
    upkeep: Upkeep, now: Snapshot, used: set[str], coming: Sequence[Node], need: _Need
) -> list[tuple[Node, Reason]]:
    have = [*now.nodes, *coming]
    idle = sum(n.name not in used for n in have)
    asleep = sorted(now.asleep, key=lambda n: (n.cpu_pct, n.name))
    found = []
    while asleep and ((short := need.short_pct(upkeep.fill_pct, have)) > 0 or idle < upkeep.spare):
        # The smallest that suffices; the largest where none does, or where only a spare is needed.
        node = next((n for n in asleep if 0 < short <= n.cpu_pct), asleep[-1])
        asleep.remove(node)
        cpu_pct = sum(n.cpu_pct for n in have)
        code, why = ReasonCode.SPARE_NODE_FETCHED, "fetched: too few idle nodes are left"
        if short > 0:
            code, why = ReasonCode.NODE_FETCHED, "fetched: the forecast load does not fit the nodes that are there"
        numbers = {
            "needed_pct": need.cpu_pct,
            "there_pct": cpu_pct,
            "instances": float(need.seats),
            "idle": float(idle),
        }
        found.append((node, Reason(node.name, code, why, numbers)))
        have.append(node)
        idle += 1
    return found


def _to_release(
    upkeep: Upkeep, grace_s: float, history: Sequence[Cycle], now: Snapshot, used: set[str], need: _Need
) -> list[tuple[Node, Reason]]:
    past = [c for c in history if c.snapshot.at_s >= now.at_s - grace_s]
    if not history or history[0].snapshot.at_s > now.at_s - grace_s:
        return []  # the history is shorter than the grace time
    there = {n.name for n in now.nodes}
    if any(n.name in there for c in past for n in c.snapshot.asleep):
        return []  # a node was just fetched: none is released
    idle = [n for n in now.nodes if n.name not in used]
    long_idle = [
        n for n in idle if all(n.name in {m.name for m in c.snapshot.nodes} and n.name not in _used(c) for c in past)
    ]
    staying = list(now.nodes)
    left = len(idle) - max(upkeep.spare, 0 if used else 1)  # at least one node stays for the next topology
    found = []
    for node in sorted(long_idle, key=lambda n: (n.cpu_pct, n.name)):  # the largest is the best spare
        rest = [n for n in staying if n != node]
        if left <= 0 or need.short_pct(EASY * upkeep.fill_pct, rest) > 0:
            break
        staying, left = rest, left - 1
        numbers = {"grace_s": grace_s, "needed_pct": need.cpu_pct, "left_pct": sum(n.cpu_pct for n in rest)}
        why = "released: no instance was on it for the grace time"
        found.append((node, Reason(node.name, ReasonCode.NODE_RELEASED, why, numbers)))
    return found
