"""Instances that are hot because of their keys, and keys that are too much for any instance. Pure.

The columns of the traffic matrix say which part p of an operator's rows goes to each of its n instances. If one key has
the part k of the rows and all others spread evenly, its instance gets p = k + (1 - k) / n. If p is large because
several keys share an instance, more instances part them, and p falls further than this. So after a change of n, a
part that fell no further than the formula says belongs to one key; its load then stays on one instance, however many
there are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barograph.model import Cycle, Frame, Grouping, OperatorDemand, Reason, ReasonCode, Snapshot, Topology
from barograph.scale.adaptive.spans import Spans

HOT = 1.5  # times an even part
WORTH_SAYING = 0.1  # of what one instance can use: a hot instance that needs less is no concern
SAME = 0.85  # of the part that one key would have: it is that key
TELLING = 1.25  # a change of the number of instances by less says little about keys
WAITS = 1.1  # times the CPU time: a row that keeps an instance busy for longer waits for something
STILL = 0.7  # of what one key was found to have: below that it was not one key
LOOK_CYCLES = 5  # as in ``Spans``, with one number of instances, over which parts are summed


@dataclass(frozen=True, slots=True)
class HotInstance:
    """index: which instance. part: of the operator's rows. even: what each would get of evenly distributed rows.
    key_part: of the rows, what one key has; 0 where it is not known to be one key. before: an earlier number of
    instances, and the largest part then; None where that is not known."""

    index: int
    part: float
    even: float
    key_part: float = 0.0
    before: tuple[int, float] | None = None


@dataclass(frozen=True, slots=True)
class HotOperator:
    """instances: those that are hot, hottest first. cpu_pct: CPU that all rows of the operator need, without any
    backlog. instances_busy: how many instances these rows keep busy all the time, each with all that it can use."""

    instances: tuple[HotInstance, ...]
    cpu_pct: float
    instances_busy: float


def hot_instances(history: Sequence[Cycle], frame: Frame, topology: Topology, operator: str) -> tuple[HotInstance, ...]:
    """The instances of an operator that are hot because of their keys, hottest first."""
    if not any(e.target == operator and e.grouping is Grouping.FIELDS for e in topology.edges):
        return ()
    count = topology.operator(operator).parallelism
    rows = frame.snapshots[-1].metrics.rows_of_operator.get((topology.name, operator))
    if count < 2 or rows is None or not _uneven(frame.snapshots[-1].metrics.columns["arrived"][rows]):
        return ()  # clusters have thousands of operators, and few of them a reason to look at the matrix
    look_s = LOOK_CYCLES * Spans.of(frame).unit_s
    parts = _parts(frame.snapshots, topology.name, operator, count, look_s)
    even = 1.0 / count
    if parts is None or (part := float(parts.max())) < HOT * even:
        return ()
    demand = history[-1].demand.of(topology.name, operator) if history else None
    known, before = 0.0 if demand is None else demand.key_part, _earlier(frame, topology.name, operator, count, look_s)
    if known:  # all rows of a key go to one instance: its part is never above that of the hottest
        known = min(known, part) if part >= STILL * known else 0.0
    elif before is not None and part >= SAME * part_of_key(key_part(before[1], before[0]), count):
        known = key_part(part, count)
    first, *others = (i for i in np.argsort(-parts, kind="stable").tolist() if parts[i] >= HOT * even)
    # Others are found to have one key each only beside the hottest, and if they got no less than that explains.
    alike = SAME * part_of_key(known, count) if known else 2.0
    more = (
        HotInstance(i, float(parts[i]), even, key_part(float(parts[i]), count) if parts[i] >= alike else 0.0)
        for i in others
    )
    return HotInstance(first, part, even, known, before), *more


def key_part(part: float, instances: int) -> float:
    """k, from p and n; 0 if the part is no more than an even one."""
    return max(0.0, (part - 1.0 / instances) / (1.0 - 1.0 / instances)) if instances > 1 else 0.0


def part_of_key(key: float, instances: int) -> float:
    """p, from k and n."""
    return key + (1.0 - key) / instances


def hot_reasons(o: OperatorDemand, hot: HotOperator, limit_pct: float, aim: float, stuck: str) -> Iterator[Reason]:
    """What is said of hot instances; nothing where one is no concern. limit_pct: what an instance can use. aim: which
    part of that it should use. stuck: why the operator cannot have more instances; empty where it can."""
    for instance in hot.instances:
        load = instance.part * hot.instances_busy
        if instance.index < o.parallelism and load >= WORTH_SAYING:
            yield _reason(o, hot, instance, limit_pct, aim, stuck if load > 1.0 else "")


def _reason(
    o: OperatorDemand, operator: HotOperator, hot: HotInstance, limit_pct: float, aim: float, stuck: str
) -> Reason:
    about, share = f"{o.topology}/{o.operator}/{hot.index}", o.shares_pct[hot.index]
    others = (sum(o.shares_pct) - share) / max(1, o.parallelism - 1)
    numbers = {"part": hot.part, "even_part": hot.even, "needed_pct": hot.part * operator.cpu_pct, "share_pct": share}
    numbers |= {"others_pct": others, "limit_pct": limit_pct, "busy_part": hot.part * operator.instances_busy}
    rows = f"{hot.part:.0%} of the rows of {o.operator} go to it because of their keys"
    if hot.key_part and hot.key_part * operator.instances_busy > aim:
        numbers |= {"key_part": hot.key_part, "key_pct": hot.key_part * operator.cpu_pct}
        tried = "" if hot.before is None else f" ({hot.before[1]:.0%} of {hot.before[0]} instances before)"
        needs = _needs(hot.key_part, operator, limit_pct, aim)
        why = (
            f"{rows}, and more instances do not lower that{tried}: one key {needs}; only the query can divide that key"
        )
        return Reason(about, ReasonCode.ONE_KEY_TOO_MUCH, why, numbers)
    if stuck:
        why = f"{rows}: it {_needs(hot.part, operator, limit_pct, aim)}, and {stuck}; let the operator have more "
        why += "instances, or divide its keys in the query, which alone helps if it is one key"
        return Reason(about, ReasonCode.ONE_KEY_TOO_MUCH, why, numbers)
    given = f"{share:.0f} %"
    if share >= limit_pct - 1e-6:  # of a small node that is all, since no placer gives more than a node has
        given = "all that one instance can use" if limit_pct >= 100.0 else "all that a node has"
    why = f"{rows}: its share is {given}, that of the others {others:.0f} % on the mean"
    return Reason(about, ReasonCode.HOT_INSTANCE, why, numbers)


def _needs(part: float, operator: HotOperator, limit_pct: float, aim: float) -> str:
    """What a part of the rows needs, in CPU, or in time where rows mostly wait."""
    cpu_pct, busy = part * operator.cpu_pct, part * operator.instances_busy
    if busy > WAITS * cpu_pct / limit_pct:
        return f"keeps an instance busy for {busy:.0%} of its time ({aim:.0%} is the most without a queue)"
    calm_pct = aim * limit_pct
    return (
        f"needs {cpu_pct:.0f} % of a core, and an instance can use {limit_pct:.0f} % ({calm_pct:.0f} % without a queue)"
    )


def _uneven(rows: NDArray[np.float64]) -> bool:
    return float(rows.max()) * len(rows) >= HOT * float(rows.sum()) > 0.0


def _parts(
    snapshots: Sequence[Snapshot], topology: str, operator: str, count: int, look_s: float
) -> NDArray[np.float64] | None:
    """The part of its rows that each instance got, over the last of these cycles that have so many instances."""
    total, seconds = np.zeros(count), 0.0
    for snapshot in reversed(snapshots):
        rows = _received(snapshot, topology, operator)
        seconds += snapshot.cycle_s
        if rows is None or len(rows) != count or (total.any() and seconds - snapshot.cycle_s / 2 >= look_s):
            break
        total = total + rows
    return total / total.sum() if total.sum() > 0 else None


def _received(snapshot: Snapshot, topology: str, operator: str) -> NDArray[np.float64] | None:
    """Rows that each instance got by key in a cycle, by the traffic matrix; its arrivals where there is none."""
    columns = [e.rows.sum(axis=0) for e in snapshot.traffic if (e.topology, e.target) == (topology, operator)]
    if columns and len({len(c) for c in columns}) == 1:
        found: NDArray[np.float64] = np.sum(columns, axis=0)
        return found
    rows = snapshot.metrics.rows_of_operator.get((topology, operator))
    return None if rows is None else snapshot.metrics.columns["arrived"][rows]


def _earlier(frame: Frame, topology: str, operator: str, count: int, look_s: float) -> tuple[int, float] | None:
    """The last other number of instances that is remembered, and the largest part that one of them got."""
    for k in range(len(frame.snapshots) - 1, -1, -1):
        rows = _received(frame.snapshots[k], topology, operator)
        if rows is not None and len(rows) > 1 and max(len(rows), count) >= TELLING * min(len(rows), count):
            parts = _parts(frame.snapshots[: k + 1], topology, operator, len(rows), look_s)
            return None if parts is None else (len(rows), float(parts.max()))
    return None
