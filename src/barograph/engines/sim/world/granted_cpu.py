"""The CPU that plans grant to instances, and the resulting CPU of each node."""

from collections.abc import Iterable, Mapping

import numpy as np

from barograph.engines.sim.world.layout import Floats, WorldLayout
from barograph.model import Instance, Plan

_LEAST_SHARE_PCT = 1.0  # the kernel writes no smaller quota


class GrantedCpu:
    """shares_pct: what is guaranteed. limits_pct: the most that may be used. most: the same in cores, by instance.

    capacity: cores of each node. enforce: whether limits bind. limit_cores: all that may be used.
    reserved_cores: all that is guaranteed; an instance without a share counts with its limit.
    """

    def __init__(self, nodes_cpu_pct: Iterable[float], enforce: bool) -> None:
        self.shares_pct: dict[Instance, float] = {}
        self.limits_pct: dict[Instance, float] = {}
        self._enforce = enforce
        self.capacity: Floats = np.array([pct / 100.0 for pct in nodes_cpu_pct])
        self.most: Floats = np.empty(0)
        self.reserved_cores = self.limit_cores = 0.0

    def grant(self, plan: Plan) -> tuple[Mapping[Instance, float], bool]:
        """The limits that are new, and whether anything changed; it takes effect with ``recompute``."""
        reserved = any(self.shares_pct.get(i) != s for i, s in plan.shares_pct.items())
        self.shares_pct.update(plan.shares_pct)
        fresh = {i: s for i, s in plan.limits_pct.items() if self.limits_pct.get(i) != s}
        self.limits_pct.update(fresh)
        return fresh, bool(fresh) or reserved

    def keep_only(self, alive: set[Instance]) -> None:
        self.shares_pct = {i: s for i, s in self.shares_pct.items() if i in alive}
        self.limits_pct = {i: s for i, s in self.limits_pct.items() if i in alive}

    def recompute(self, layout: WorldLayout) -> None:
        """Once for each change of placement or shares, so that a step of time need not do it."""
        cpu = self.capacity
        limit = np.array([self.limits_pct.get(i, np.nan) for i in layout.instances]) / 100.0
        share = np.array([self.shares_pct.get(i, np.nan) for i in layout.instances]) / 100.0
        placed = layout.node_of >= 0
        free = np.minimum(np.where(placed, cpu[layout.node_of], 1.0), 1.0)
        most = np.minimum(np.where(np.isnan(limit), 1.0, limit), free)
        self.most = np.maximum(most if self._enforce else free, _LEAST_SHARE_PCT / 100.0)
        limited = np.bincount(layout.node_of[placed], weights=most[placed], minlength=len(cpu))
        # an instance without a share of its own is guaranteed all that it may use
        guaranteed = np.minimum(np.where(np.isnan(share), most, share), free)
        reserved = np.bincount(layout.node_of[placed], weights=guaranteed[placed], minlength=len(cpu))
        self.reserved_cores = float(np.minimum(reserved, cpu).sum())
        self.limit_cores = float(np.minimum(limited, cpu).sum())
