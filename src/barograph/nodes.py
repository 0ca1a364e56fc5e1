"""Which nodes are released because nobody needs them, and which are fetched before they are needed. Pure.

A node is released once no instance was on it, or was to be, for a grace time; some idle ones are kept as spares, so
that a burst or a lost node finds room at once. Asleep ones are fetched when the spares are used up, and when what is
forecast for the time a fetch takes does not fit those that are there. It places nothing and knows no engine.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from barograph.model import Cycle, Demand, Node, Reason, Slot, Snapshot, Worker
from barograph.model.checks import require_number, require_positive, require_whole

COMING_S = 60.0  # a node that was fetched and is not there after so long is not counted on any more
EASY = 0.8  # of what may be filled, the rest must need no more than this before one goes: or it would be back at once
_LEARNED = 3  # so many of the last fetches tell how long one takes


@dataclass(frozen=True, slots=True)
class Upkeep:
    """release_after_s: the grace time; None: every node is kept. spare: idle nodes that stay at all events.

    fill_pct: how much of the CPU that is there the forecast may need before more is fetched. fetch_s: how long a fetch
    is taken to last as long as none has been seen.
    """

    release_after_s: float | None = None
    spare: int = 1
    fill_pct: float = 85.0
    fetch_s: float = 15.0

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


def keep_nodes(upkeep: Upkeep, history: Sequence[Cycle], cycle: Cycle, ahead: Demand) -> NodeOrders:
    """What to do about nodes once the cycle's plan is applied. ahead: what is needed by the time a fetch is over."""
    now = cycle.snapshot
    if upkeep.release_after_s is None:
        why = "fetched: nodes are not to be released"
        return NodeOrders(fetch=_names(now.asleep), reasons=tuple(Reason(n.name, why) for n in now.asleep))
    coming = _coming(history, now)
    need = _Need.of(cycle.demand, ahead)
    used = _used(cycle)
    fetched = _to_fetch(upkeep, now, used, coming, need)
    if fetched or coming:
        return NodeOrders(fetch=_names(n for n, _ in fetched), reasons=tuple(r for _, r in fetched))
    released = _to_release(upkeep, upkeep.release_after_s, history, now, used, need)
    return NodeOrders(release=_names(n for n, _ in released), reasons=tuple(r for _, r in released))


def awake(now: Snapshot) -> Snapshot:
    """The cluster as it would be were every node fetched, so that what is needed is not taken for what there is."""
    workers = (Worker(Slot(n.name, k), f"{n.name}-{k}", n.seats or 1) for n in now.asleep for k in range(n.slots))
    return replace(now, nodes=(*now.nodes, *now.asleep), workers=(*now.workers, *workers), asleep=())


def fetch_time_s(upkeep: Upkeep, history: Sequence[Cycle]) -> float:
    """From the last cycle in which a node was asleep to the first in which it was there: the longest of late."""
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
        """CPU that is missing on these nodes; infinite where only seats are."""
        there = list(nodes)
        missing = self.cpu_pct * 100.0 / fill_pct - sum(n.cpu_pct for n in there)
        if missing > 0:
            return missing
        seats = [n.slots * n.seats for n in there if n.seats is not None]
        return float("inf") if len(seats) == len(there) and self.seats > sum(seats) else 0.0


def _names(nodes: Iterable[Node]) -> tuple[str, ...]:
    return tuple(n.name for n in nodes)


def _used(cycle: Cycle) -> set[str]:
    """Nodes that hold an instance, or will."""
    return {s.node for p in (cycle.snapshot.placement, cycle.plan.placement) for s in p.slots.values()}


def _coming(history: Sequence[Cycle], now: Snapshot) -> tuple[Node, ...]:
    """Nodes that were asleep a moment ago, are so no more, and are not there yet."""
    there = {n.name for n in (*now.nodes, *now.asleep)}
    recent = [c.snapshot for c in history if c.snapshot.at_s > now.at_s - COMING_S]
    found: dict[str, Node] = {}
    for snapshot in recent:  # one that was there since and is gone again has died: nobody knows when it comes
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
        # The smallest that suffices; where none does, or none must, the largest.
        node = next((n for n in asleep if 0 < short <= n.cpu_pct), asleep[-1])
        asleep.remove(node)
        cpu_pct = sum(n.cpu_pct for n in have)
        why = "what is forecast does not fit the nodes there are" if short > 0 else "no node is left to spare"
        numbers = {
            "needed_pct": need.cpu_pct,
            "there_pct": cpu_pct,
            "instances": float(need.seats),
            "idle": float(idle),
        }
        found.append((node, Reason(node.name, f"fetched: {why}", numbers)))
        have.append(node)
        idle += 1
    return found


def _to_release(
    upkeep: Upkeep, grace_s: float, history: Sequence[Cycle], now: Snapshot, used: set[str], need: _Need
) -> list[tuple[Node, Reason]]:
    past = [c for c in history if c.snapshot.at_s >= now.at_s - grace_s]
    if not history or history[0].snapshot.at_s > now.at_s - grace_s:
        return []  # nobody has looked for so long
    there = {n.name for n in now.nodes}
    if any(n.name in there for c in past for n in c.snapshot.asleep):
        return []  # one was just fetched: nobody is too many
    idle = [n for n in now.nodes if n.name not in used]
    long_idle = [
        n for n in idle if all(n.name in {m.name for m in c.snapshot.nodes} and n.name not in _used(c) for c in past)
    ]
    staying = list(now.nodes)
    left = len(idle) - max(upkeep.spare, 0 if used else 1)  # somebody has to be there for who comes next
    found = []
    for node in sorted(long_idle, key=lambda n: (n.cpu_pct, n.name)):  # the largest is the best spare
        rest = [n for n in staying if n != node]
        if left <= 0 or need.short_pct(EASY * upkeep.fill_pct, rest) > 0:
            break
        staying, left = rest, left - 1
        numbers = {"grace_s": grace_s, "needed_pct": need.cpu_pct, "left_pct": sum(n.cpu_pct for n in rest)}
        found.append((node, Reason(node.name, "released: no instance was there for the grace time", numbers)))
    return found
