"""A target for the p99 of a topology: the least CPU with which its forecast stays below, and what that costs. Pure.

Forecast load, with the usual error of the forecast, gives the load of each instance at a share; ``queueing.py`` gives
the p99 along the slowest path, ``learned.py`` the floor and the factor that were measured. All operators begin with as
little headroom as is safe; then the operator of the slowest path on which more CPU shortens the p99 most gets more,
step by step, until the forecast is below the target, or more CPU would bring next to nothing.

A boundary pauses the output for about half a second. No share changes that: under a shorter target, changes that
nothing forces are rarer (``place/adaptive/thrifty.py``), and epochs that end too often are named as the reason why the
target cannot be held.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from barograph.model import Cycle, Frame, OperatorDemand, Reason, ReasonCode, Snapshot, Topology
from barograph.model.plan import BOUNDARY_S
from barograph.scale.adaptive.cost import Cost
from barograph.scale.adaptive.instances import Need
from barograph.scale.adaptive.learned import Learned, boundaries, learn, metrics_of, p99_ms, why_blind
from barograph.scale.adaptive.queueing import PART, Leg, leg, path_p99_s

HIGHEST, LOWEST = 0.95, 0.1  # of the part of a share that is used
STEP = 0.93  # by which that part falls in one step
LEAST_PCT = 1.0  # of a core, of an instance's work
JUDGED_FROM = 0.25  # of the load that is claimed: the part that must be due for the target to be judged
LITTLE = 0.005  # of the p99: a step that saves less is not worth its CPU
MORE_INSTANCES = 0.8  # of the load at which all of a limit is used: what an instance should use at most
OFTEN = 3  # boundaries that are seen before their number per second is known
RISE_CYCLES = 2  # in which the load rises before a share follows: one until it is seen, one until that is in force
LOOK_CYCLES = 20  # in which the fastest rise of the load is looked for
MOST_RISE = 2.0


@dataclass(frozen=True, eq=False)
class Aim:
    """Of one topology: which part of its share an instance of each operator should use.

    utilisation: by operator; empty where nothing is known yet. full: operators whose share cannot rise and should:
    only more instances help; with the part of its limit that an instance should use. burst_pct: the limits in force,
    where these are above shares. due_part: see ``due_part``.
    """

    target_s: float
    learned: Learned | None = None
    needs: Mapping[str, Need] = field(default_factory=dict)
    burst_pct: Mapping[str, float] = field(default_factory=dict)
    utilisation: Mapping[str, float] = field(default_factory=dict)
    full: Mapping[str, float] = field(default_factory=dict)
    due_part: float = 1.0

    @property
    def least_pct(self) -> float:
        """Work below this gets a share as if it were this much, unless nearly nothing is due."""
        return LEAST_PCT if self.due_part > LOWEST else 0.0


NO_AIM = Aim(float("inf"))


def aim_for(
    history: Sequence[Cycle],
    now: Snapshot,
    topology: Topology,
    target_s: float,
    needs: Mapping[str, Need],
    burst_pct: Mapping[str, float],
    due: float = 1.0,
) -> Aim:
    """due: see ``due_part``."""
    if due <= LOWEST:  # no share that follows what is due would hold a load so much larger, so none is bought for it
        needs = {name: replace(need, sure_rows=need.rows) for name, need in needs.items()}
    learned = learn(history, now, topology)
    known = {name: need for name, need in needs.items() if need.kappa_s is not None}
    if learned is None or len(known) < len(topology.operators):
        return Aim(target_s, needs=needs, burst_pct=burst_pct, due_part=due)
    used = dict.fromkeys(known, HIGHEST)
    bursts = {name: burst_pct.get(name, 0.0) for name in known}
    legs = {name: _leg(need, _shares(need, HIGHEST), bursts[name]) for name, need in known.items()}
    while True:
        model_s, path = path_p99_s(topology, legs)
        p99_s = learned.p99_s(model_s)
        if p99_s <= target_s:
            break
        steps = [(name, _step(known[name], used[name], legs[name], len(path), bursts[name])) for name in path]
        worth = [(gain, name, better) for name, (gain, saved_s, better) in steps if _pays(saved_s, learned, p99_s)]
        if not worth:
            break
        _, name, better = max(worth, key=lambda w: w[0])
        used[name], legs[name] = used[name] * STEP, better
    full: dict[str, float] = {}
    if p99_s > target_s:
        full = {name: need_part for name, need in known.items() if (need_part := _part_when_full(need, used[name]))}
        full = {name: part for name, part in full.items() if _more_help(topology, known, legs, name, learned, p99_s)}
    return Aim(target_s, learned, needs, burst_pct, used, full, due)


def with_rise(frame: Frame, topology: Topology, needs: Mapping[str, Need]) -> dict[str, Need]:
    """The needs, with a load that may rise as fast as it ever changed in the last cycles, whatever is forecast: the
    error of a forecast is small while a load falls steadily, and large as soon as it turns."""
    sources = _sources(frame, topology)
    rows = frame.paced("arrived")[-LOOK_CYCLES:, sources].sum(axis=1)
    steps = np.abs(np.diff(rows))
    step = float(np.quantile(steps, 0.9)) if len(steps) else 0.0
    expected = sum(float(needs[frame.keys[i][1]].sure_rows.sum()) for i in sources)
    times = (float(rows[-1]) + RISE_CYCLES * step) / expected if expected > 0 else 1.0
    times = min(MOST_RISE, max(1.0, times))
    return {name: replace(need, sure_rows=need.sure_rows * times) for name, need in needs.items()}


def due_part(frame: Frame, topology: Topology, needs: Mapping[str, Need]) -> float:
    """Which part of the load that is claimed, error and rise included, is due: has arrived, is forecast, or waits.

    While a stop or a fall is among the cycles that forecasts are scored by, their error is that of a load that has
    gone: after a fall to a twentieth, four times what is due is claimed."""
    sources = _sources(frame, topology)
    at_sources = [needs[frame.keys[i][1]] for i in sources]
    arrived, forecast = float(frame.column("arrived")[-1, sources].sum()), sum(need.arriving for need in at_sources)
    parts = [(max(arrived, forecast), sum(float(need.sure_rows.sum()) for need in at_sources))]
    parts += [(need.backlog, float(need.sure_rows.sum())) for need in needs.values()]
    return max(rows / claimed if claimed > 0.0 else 0.0 for rows, claimed in parts)


def _sources(frame: Frame, topology: Topology) -> list[int]:
    return [i for i, key in enumerate(frame.keys) if key[0] == topology.name and frame.sources[i]]


def pauses_miss(topology: Topology) -> bool:
    """Whether the pause of one boundary is longer than the target for its p99."""
    return topology.target_p99_ms is not None and topology.target_p99_ms < 1e3 * BOUNDARY_S


def target_reason(
    history: Sequence[Cycle],
    now: Snapshot,
    topology: Topology,
    aim: Aim,
    sized: Sequence[OperatorDemand],
    cost: Cost,
) -> Reason | None:
    """What became of the target; None while that is not known, or nearly nothing is due: the last verdict then stands.
    sized: of this topology, perhaps beside others."""
    target_ms = 1e3 * aim.target_s
    about, numbers = topology.name, {"target_p99_ms": target_ms}
    if aim.learned is None:
        why = why_blind(history, now, about, [name for name, need in aim.needs.items() if need.kappa_s is None])
        return None if why is None else Reason(about, ReasonCode.TARGET_BLIND, why, numbers)
    if aim.due_part <= JUDGED_FROM:
        return None
    shares = {o.operator: np.array(o.shares_pct) for o in sized if o.topology == about}
    shares_pct = float(sum(float(s.sum()) for s in shares.values()))
    quota = topology.quota_cpu_pct
    cut = 1.0 if quota is None else min(1.0, quota / max(shares_pct, 1e-9))
    needs = {name: need.over(len(shares[name])) for name, need in aim.needs.items()}
    legs = _legs(needs, {name: cut * pct for name, pct in shares.items()}, aim.burst_pct, cut)
    model_s, path = path_p99_s(topology, legs)
    p99_s = aim.learned.p99_s(model_s)
    ended, seconds = boundaries(history, now, about)
    paused = ended * BOUNDARY_S / max(seconds, 1.0)
    numbers |= {
        "forecast_p99_ms": 1e3 * p99_s,
        "floor_ms": 1e3 * (aim.learned.floor_s + aim.learned.margin_s),
        "queues_ms": 1e3 * aim.learned.factor * model_s,
        **cost.numbers,
        "paused_part": paused,
    }
    held = f"the forecast p99 is {1e3 * p99_s:.0f} ms with {cost.text}"
    if p99_s > aim.target_s:
        slowest = max(path, key=lambda name: legs[name].mean_s + legs[name].above_s)
        lacking = _lacking(topology, aim, needs, shares, sized)
        why = f"a p99 of {target_ms:g} ms cannot be held: {held}, and {lacking}; {slowest} takes longest"
        if key := aim.needs[slowest].key_part:
            why += f", and one key has {key:.0%} of its rows, which more instances do not divide"
        return Reason(about, ReasonCode.TARGET_MISSED, why, numbers)
    if aim.target_s < BOUNDARY_S and ended >= OFTEN and paused > PART:
        why = f"a p99 of {target_ms:g} ms cannot be held: an epoch ends every {seconds / ended:.0f} s, which pauses "
        why += f"the output for {BOUNDARY_S:g} s; longer epochs help (recovery, the query's trigger), CPU does not"
        return Reason(about, ReasonCode.TARGET_MISSED, why, numbers)
    return Reason(about, ReasonCode.TARGET_HELD, f"a p99 of {target_ms:g} ms is held: {held}", numbers)


def _lacking(
    topology: Topology,
    aim: Aim,
    needs: Mapping[str, Need],
    shares: Mapping[str, NDArray[np.float64]],
    sized: Sequence[OperatorDemand],
) -> str:
    """What stands against the target: the quota, the nodes, or what one instance may have, where more would help.

    shares: as sized, before the quota cuts them.
    """

    def is_held_with(shares_pct: Mapping[str, NDArray[np.float64]]) -> bool:
        model_s, _ = path_p99_s(topology, _legs(needs, shares_pct, aim.burst_pct))
        return aim.learned is not None and aim.learned.p99_s(model_s) <= aim.target_s

    if aim.utilisation.keys() != needs.keys():
        return "more CPU brings little"
    wished = {name: np.maximum(shares[name], _shares(need, aim.utilisation[name])) for name, need in needs.items()}
    wished_pct = sum(float(pct.sum()) for pct in wished.values())
    quota = topology.quota_cpu_pct
    if quota is not None and wished_pct > quota and is_held_with(wished):
        return f"its quota is {quota:g} %, where {wished_pct:.0f} % would hold it"
    codes = {o.reason.code for o in sized if o.topology == topology.name and o.reason is not None}
    if codes & {ReasonCode.HEADROOM_GIVEN_UP, ReasonCode.CLUSTER_TOO_SMALL} and is_held_with(wished):
        return f"the nodes have no room for the {wished_pct:.0f} % that would hold it"
    if aim.full:
        most_pct = max(needs[name].limit_pct for name in aim.full)
        return f"no instance may have more than {most_pct:.0f} % on these nodes, so more CPU needs more instances"
    return "more CPU brings little"


def in_a_hurry(now: Snapshot, topology: Topology) -> bool:
    """Whether the p99 of a topology is above its target now: its backlog is then cleared at once."""
    metrics = metrics_of(now, topology.name)
    measured = None if metrics is None else p99_ms(metrics)
    return topology.target_p99_ms is not None and measured is not None and measured > topology.target_p99_ms


def _shares(need: Need, used: float) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.minimum(np.maximum(need.r_pct, LEAST_PCT) / used, need.limit_pct)
    return found


def _leg(need: Need, shares_pct: NDArray[np.float64], burst_pct: float) -> Leg:
    """The time at one operator, for the expected load with the forecast's error. A share is what an instance gets in
    the long run; one row is executed at the speed that its limit allows."""
    shares = np.maximum(shares_pct, 1e-3)
    cpu_s = need.kappa_s or 0.0
    service_s = np.maximum(cpu_s * 100.0 / np.maximum(shares, burst_pct), need.service_s)
    load = need.sure_rows * np.maximum(cpu_s * 100.0 / shares, need.service_s) / need.cycle_s
    return leg(load, need.sure_rows, service_s, need.cycle_s)


def bursts_pct(history: Sequence[Cycle], topology: Topology) -> dict[str, float]:
    """By operator, the lowest limit of its instances that is in force; missing where none is known."""
    found: dict[str, float] = {}
    for instance, pct in (history[-1].plan.limits_pct if history else {}).items():
        if instance.topology == topology.name:
            found[instance.operator] = min(pct, found.get(instance.operator, pct))
    return found


def _legs(
    needs: Mapping[str, Need],
    shares_pct: Mapping[str, NDArray[np.float64]],
    bursts_pct: Mapping[str, float],
    cut: float = 1.0,
) -> dict[str, Leg]:
    """cut: the part of a burst that a quota leaves."""
    return {n: _leg(need, shares_pct[n], cut * bursts_pct.get(n, 0.0)) for n, need in needs.items()}


def _step(need: Need, used: float, present: Leg, hops: int, burst_pct: float) -> tuple[float, float, Leg]:
    """One step more of CPU for an operator: what it saves for each per cent of a core, what it saves, its new leg."""
    before, after = _shares(need, used), _shares(need, used * STEP)
    cost_pct = float((after - before).sum())
    if used * STEP < LOWEST or cost_pct <= 0.0:
        return 0.0, 0.0, present
    better = _leg(need, after, burst_pct)
    # Squares of distances add up along a path, so each counts by about the root of their number.
    saved_s = present.mean_s - better.mean_s + (present.above_s - better.above_s) / np.sqrt(hops)
    return saved_s / cost_pct, float(saved_s), better


def _pays(saved_s: float, learned: Learned, p99_s: float) -> bool:
    return learned.factor * saved_s > LITTLE * p99_s


def _part_when_full(need: Need, used: float) -> float:
    """Where a share is at the most that one instance can use: which part an instance should use; else 0."""
    hottest = float(need.r_pct.max())
    return MORE_INSTANCES * hottest / need.limit_pct if hottest / used >= need.limit_pct else 0.0


def _more_help(
    topology: Topology, needs: Mapping[str, Need], legs: Mapping[str, Leg], name: str, learned: Learned, p99_s: float
) -> bool:
    """Whether one instance more of an operator would shorten the p99 by a tenth."""
    need = needs[name]
    wider = need.over(len(need.rows) + 1)
    better = {**legs, name: _leg(wider, np.full(len(wider.rows), need.limit_pct), 0.0)}
    return learned.p99_s(path_p99_s(topology, better)[0]) < 0.9 * p99_s
