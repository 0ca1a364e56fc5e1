"""What holding a target for the p99 costs a topology: CPU and nodes, with the target and without. Pure.

Both are counted for the instances that it has, beside all other topologies. Nodes are the fewest that have room for all
instances; a placement may use more, for example while moving instances is not worth a pause.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from barograph.model import OperatorDemand, Snapshot
from barograph.scale.adaptive.reserve import nodes_for

Room = Callable[[OperatorDemand], OperatorDemand]


@dataclass(frozen=True, slots=True)
class Cost:
    """All shares of the topology, and all nodes in use; plain: without the target."""

    share_pct: float
    plain_pct: float
    nodes: int
    plain_nodes: int

    @property
    def numbers(self) -> dict[str, float]:
        return {
            "share_pct": self.share_pct,
            "bought_pct": self.share_pct - self.plain_pct,
            "nodes": float(self.nodes),
            "bought_nodes": float(self.nodes - self.plain_nodes),
        }

    @property
    def text(self) -> str:
        cpu_pct, nodes = self.share_pct - self.plain_pct, self.nodes - self.plain_nodes
        whole = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        more = "as many as" if nodes == 0 else f"{abs(nodes)} {_more(nodes)} than"
        held = f"{self.share_pct:.0f} % of a core in all, {abs(cpu_pct):.0f} % {_more(cpu_pct)} than without a target"
        return f"{held}, which fits on {whole}, {more} without it"


def cost_of(
    topology: str, now: Snapshot, demands: Sequence[OperatorDemand], plain: Sequence[OperatorDemand], room: Room
) -> Cost:
    """demands: of all topologies, with their room. plain: of this one, with the shares it would have without the
    target. room: gives these the room that they would have."""
    quota_pct = now.topology(topology).quota_cpu_pct
    mine = [o for o in demands if o.topology == topology]
    others = [o for o in demands if o.topology != topology]
    mine, without = _cut(mine, quota_pct), _cut([room(o) for o in plain], quota_pct)
    return Cost(_sum(mine), _sum(without), nodes_for([*others, *mine], now), nodes_for([*others, *without], now))


def _cut(demands: Sequence[OperatorDemand], quota_pct: float | None) -> list[OperatorDemand]:
    """As the quota will cut them: what is reserved counts towards it too."""
    if quota_pct is None:
        return list(demands)
    part = min(1.0, quota_pct / max(_sum(demands), 1e-9))
    roomy = min(1.0, quota_pct / max(sum(sum(o.reserved_pct or o.shares_pct) for o in demands), 1e-9))
    return [
        replace(
            o,
            shares_pct=tuple(part * pct for pct in o.shares_pct),
            reserved_pct=tuple(roomy * pct for pct in o.reserved_pct),
        )
        for o in demands
    ]


def _sum(demands: Sequence[OperatorDemand]) -> float:
    return float(sum(sum(o.shares_pct) for o in demands))


def _more(difference: float) -> str:
    return "more" if difference >= 0 else "fewer" if isinstance(difference, int) else "less"
