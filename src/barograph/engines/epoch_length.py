"""How long epochs may be, from the recovery target. Pure; it sets nothing.

A failure replays the open epoch. With D the time until rows flow again, E the epoch's length, lambda the load, mu the
topology's capacity and B its backlog, it has caught up after

    D + (lambda (E + D) + B) / (mu - lambda)

so the longest epoch that keeps this within the recovery target R is E = ((R - D)(mu - lambda) - lambda D - B) / lambda.
Long epochs cost less in steady state; short ones leave less to replay.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from barograph.config import default
from barograph.model import Reason, ReasonCode, Snapshot
from barograph.model.checks import require, require_number, require_positive


@dataclass(frozen=True, slots=True)
class Recovery:
    """recovery_s: the target R. down_s: D, as measured lately. least_s, most_s: bounds of an epoch.

    near: the present length is kept where it is shorter than the computed one by at most this part of it.
    """

    recovery_s: float = default("recovery")
    down_s: float = default("epochs.down")
    least_s: float = default("epochs.least")
    most_s: float = default("epochs.most")
    near: float = default("epochs.near")

    def __post_init__(self) -> None:
        require_positive("recovery_s", self.recovery_s)
        require_number("down_s", self.down_s)
        require_positive("the shortest epoch", self.least_s)
        ordered = self.least_s <= self.most_s
        require(ordered, f"the shortest epoch {self.least_s:g} s is above the longest epoch {self.most_s:g} s")
        require_number("near", self.near)


def recovery_of(target_s: float | None, epochs: Mapping[str, float]) -> Recovery | None:
    """By the options ``recovery`` and ``epochs.*``; None where there is no target."""
    return None if target_s is None else Recovery(**{**epochs, "recovery_s": target_s})


@dataclass(frozen=True, slots=True)
class EpochLength:
    seconds: float
    reason: Reason


def epoch_length(now: Snapshot, topology: str, recovery: Recovery, present_s: float | None = None) -> EpochLength:
    """The longest epoch, within bounds, that meets the recovery target; the present one if it is near enough."""
    load = load_rows_s(now, topology)
    able = capacity_rows_s(now, topology)
    backlog = next((t.backlog_rows for t in now.topology_metrics if t.topology == topology and t.backlog_known), None)
    numbers = {"recovery_s": recovery.recovery_s, "down_s": recovery.down_s}
    if load is None or load <= 0 or able is None:
        kept = min(recovery.most_s, max(recovery.least_s, present_s or recovery.most_s))
        why = "no load is measured, so a failure would replay nothing"
        return EpochLength(kept, Reason(topology, ReasonCode.EPOCH_NO_LOAD, why, {**numbers, "epoch_s": kept}))
    spare = able - load
    longest_s = ((recovery.recovery_s - recovery.down_s) * spare - load * recovery.down_s - (backlog or 0.0)) / load
    seconds = min(recovery.most_s, max(recovery.least_s, longest_s))
    if longest_s < recovery.least_s:
        code, why = ReasonCode.EPOCH_SHORTEST, "even the shortest epoch misses the recovery target"
    elif longest_s > recovery.most_s:
        code, why = ReasonCode.EPOCH_LONGEST, "the longest epoch allowed meets the recovery target"
    else:
        code, why = ReasonCode.EPOCH_FITTED, "the longest epoch that meets the recovery target"
    # A present length that is too long is not kept: missing the target is worse than a change.
    if present_s is not None and seconds * (1 - recovery.near) <= present_s <= seconds:
        seconds, code, why = present_s, ReasonCode.EPOCH_KEPT, "the present length is near enough"
    numbers |= {"load_rows_s": load, "capacity_rows_s": able, "longest_s": longest_s}
    if backlog is not None:  # of a source that does not tell what is due it is unknown, which is not 0
        numbers["backlog_rows"] = backlog
    return EpochLength(seconds, Reason(topology, code, why, {**numbers, "epoch_s": seconds}))


def load_rows_s(now: Snapshot, topology: str) -> float | None:
    """Rows a second that fall due at its sources; None where nothing was measured."""
    of = now.topology(topology)
    sources = [o.name for o in of.operators if o.source or not of.parents(o.name)]
    if not any((topology, name) in now.metrics.rows_of_operator for name in sources):
        return None
    return sum(now.metrics.of_operator(topology, name).arrived for name in sources) / now.cycle_s


def capacity_rows_s(now: Snapshot, topology: str) -> float | None:
    """Source rows a second that it can process as placed now: with its busiest instance or fullest node fully used."""
    of = now.topology(topology)
    sources = [o.name for o in of.operators if o.source or not of.parents(o.name)]
    read = sum(now.metrics.of_operator(topology, name).executed for name in sources) / now.cycle_s
    mine = [p for (t, _), rows in now.metrics.rows_of_operator.items() if t == topology for p in rows.tolist()]
    busy_s = float(now.metrics.columns["busy_s"][mine].max()) if mine else 0.0
    if read <= 0 or busy_s <= 0:
        return None
    room = [now.cycle_s / busy_s]
    used: dict[str, float] = {}
    for position, instance in enumerate(now.metrics.instances):
        slot = now.placement.get(instance)
        if slot is not None:
            used[slot.node] = used.get(slot.node, 0.0) + float(now.metrics.columns["cpu_s"][position])
    homes = {now.placement[i].node for i in of.instances() if i in now.placement}
    given = {n.name: n.cpu_pct / 100.0 * now.cycle_s for n in now.nodes}
    room += [given[node] / used[node] for node in sorted(homes) if used.get(node, 0.0) > 0 and node in given]
    return read * max(1.0, min(room))
