"""How many instances each operator gets where there are too few seats for all: fewer of those that can be scaled.

After a node is lost the seats that are left may be too few for a topology that was scaled up. Spark refuses to start it
then. It is better served by fewer instances at once than by all of them when the node is back, which may be never.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from barograph.model import Topology


@dataclass(frozen=True, slots=True)
class Fewer:
    """Instances by operator as they are to be when there are seats again, and as there are seats for now."""

    wanted: Mapping[str, int]
    given: Mapping[str, int]

    @property
    def changed(self) -> dict[str, int]:
        return {name: count for name, count in self.given.items() if count != self.wanted[name]}


def fitting(topology: Topology, wanted: Mapping[str, int], seats: int) -> dict[str, int]:
    """Instances by operator: as wanted, or as many as there are seats; more only where no operator can have fewer.

    Whoever has most gives first: he loses the smallest part of what he can do. A stateful operator has as many as its
    state is split into.
    """
    found = dict(wanted)
    least = {o.name: o.min_parallelism for o in topology.operators if not o.stateful and not o.fixed_because}
    while sum(found.values()) > seats:
        giving = max((name for name in least if found[name] > least[name]), key=lambda n: found[n], default=None)
        if giving is None:
            break
        found[giving] -= 1
    return found
