"""CPU limits of the instances on all nodes of an embedded cluster. Which limit is right is decided elsewhere."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from barograph.engines.spark.cluster.node_limit import RunGroups
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.limits.control_groups import GroupUsage, NodeLimits, node_group, warn
from barograph.engines.spark.limits.group_writes import ThreadLimit
from barograph.model import Instance


class ClusterLimits:
    """groups: of the cluster's run, or one sentence that says why it has none.

    cores: of each node's fence; a node that is missing, or None, has no fence.
    """

    def __init__(
        self,
        groups: RunGroups | str,
        nodes: Iterable[str],
        say: Callable[[str], None] = warn,
        cores: Mapping[str, float | None] = MappingProxyType({}),
    ) -> None:
        self.problem = ""
        self._say = say
        self._nodes: dict[str, NodeLimits] = {}
        if isinstance(groups, str):
            self._give_up(f"CPU limits are not enforced: {groups}")
        else:
            self._nodes = {n: NodeLimits(node_group(groups, n), self._give_up, cores.get(n)) for n in nodes}

    def __enter__(self) -> "ClusterLimits":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def hold(self, held: Mapping[Instance, tuple[str, ThreadLimit]]) -> tuple[str, ...]:
        """held: instance -> its node, thread and limit. Instances that are not named have no limit from now on.

        Returns one sentence for each instance that could not be limited."""
        lost = [f"{i}: there is no node {node!r}" for i, (node, _) in held.items() if node not in self._nodes]
        if self.problem:
            return ()
        for name, limits in self._nodes.items():
            lost += limits.hold({i: h for i, (node, h) in held.items() if node == name})
        return tuple(lost)

    def usage(self) -> dict[Instance, GroupUsage]:
        return {i: usage for limits in self._nodes.values() for i, usage in limits.usage().items()}

    def release(self) -> None:
        for limits in self._nodes.values():
            limits.release()

    def _give_up(self, sentence: str) -> None:
        """Limits on only some nodes would distort results, so if one fails all are removed. This is reported once."""
        if not self.problem:
            self.problem = sentence
            self._say(sentence)
            for limits in self._nodes.values():
                if not limits.problem:  # a node with a problem has already released its own
                    limits.release()


def limits_of_run(run: Run, say: Callable[[str], None] = warn) -> ClusterLimits:
    """For a cluster that runs; only one driver may use them at a time."""
    groups = run.groups if run.groups is not None else run.unfenced_because or "this cluster has no control groups"
    found = ClusterLimits(groups, run.settings.node_names(), say, run.settings.node_cpus())
    found.release()  # remove what a killed driver left
    return found
