"""Whole nodes by priority: SPS and DPS (Chakraborty) as stages. counts.py says how many nodes, keep.py says which.

A topology that declares no number of nodes desires as many as its CPU demand needs; its minimum is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from barograph.allot.counts import Given, dps, sps
from barograph.allot.keep import choose_nodes
from barograph.model import Allotment, Cycle, Demand, Reason, ReasonCode, Snapshot, Topology
from barograph.model.checks import require


@dataclass(frozen=True)
class Sps:
    """Static priorities; no topology starves while all minimums fit."""

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand) -> Allotment:
        desired = _desired(now, demand)
        minimum = [_minimum(t, d) for t, d in zip(now.topologies, desired, strict=True)]
        if not desired:
            return Allotment(idle=tuple(n.name for n in now.nodes))
        found = sps(len(now.nodes), desired, minimum, [t.level for t in now.topologies])
        return _allotment(history, now, found, desired, minimum)


@dataclass(frozen=True)
class Dps:
    """Dynamic priorities; a lower level may starve.

    starve_cycles: not in the thesis. A topology that starved in that many of the last twice as many cycles gets one
    node, so that topologies take turns and none waits for ever. None, as in the thesis: no bound.
    """

    starve_cycles: int | None = None

    def __call__(self, history: Sequence[Cycle], now: Snapshot, demand: Demand) -> Allotment:
        desired = _desired(now, demand)
        if not desired:
            return Allotment(idle=tuple(n.name for n in now.nodes))
        found = dps(len(now.nodes), desired, [t.level for t in now.topologies])
        if self.starve_cycles is not None:
            found = self._with_turns(history, now, found)
        return _allotment(history, now, found, desired, [0] * len(desired))

    def _with_turns(self, history: Sequence[Cycle], now: Snapshot, found: Given) -> Given:
        limit = self.starve_cycles or 1
        given = list(found.given)
        for i in found.starved:
            name = now.topologies[i].name
            hungry = sum(name in c.allotment.starved for c in history[-2 * limit :])
            # From the lowest level that can spare a node: its topology with most nodes, the last listed of those.
            rich = max(
                (j for j, n in enumerate(given) if n > 1),
                key=lambda j: (now.topologies[j].level, given[j], j),
                default=None,
            )
            if hungry >= limit and rich is not None:
                given[rich] -= 1
                given[i] += 1
        return Given.of(len(now.nodes), given)


def _desired(now: Snapshot, demand: Demand) -> list[int]:
    require(len(now.nodes) > 0, "the cluster has no nodes to allot")
    node_pct = now.cluster_cpu_pct / len(now.nodes)
    asked_pct = dict.fromkeys((t.name for t in now.topologies), 0.0)
    for o in demand.operators:
        asked_pct[o.topology] = asked_pct.get(o.topology, 0.0) + sum(o.shares_pct)
    return [t.desired_nodes or max(1, -int(-asked_pct[t.name] // node_pct)) for t in now.topologies]


def _minimum(topology: Topology, desired: int) -> int:
    return min(1 if topology.minimum_nodes is None else topology.minimum_nodes, desired)


def _allotment(
    history: Sequence[Cycle], now: Snapshot, found: Given, desired: Sequence[int], minimum: Sequence[int]
) -> Allotment:
    names = [t.name for t in now.topologies]
    nodes, idle = choose_nodes(history, now, dict(zip(names, found.given, strict=True)))
    reasons = []
    for t, given, wanted, least in zip(now.topologies, found.given, desired, minimum, strict=True):
        numbers = {
            "given_nodes": float(given),
            "desired_nodes": float(wanted),
            "minimum_nodes": float(least),
            "level": float(t.level),
            "cluster_nodes": float(len(now.nodes)),
        }
        why = "gets no node now: higher levels and minimums take them all" if given == 0 else "nodes by its level"
        code = ReasonCode.NO_NODE_LEFT if given == 0 else ReasonCode.NODES_BY_LEVEL
        reasons.append(Reason(t.name, code, why, numbers))
    return Allotment(nodes, tuple(names[i] for i in found.starved), idle, tuple(reasons))
