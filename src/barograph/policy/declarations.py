"""Which of the options that only some policies use are used by which: what a query declares is else without effect.

Bounds of instances, quotas and levels hold under every policy and are not among them. Pure.
"""

from collections.abc import Iterable

from barograph.model import Topology

WORKERS, ISOLATE, CPU, MEMORY = "query.workers", "query.isolate-nodes", "query.cpu", "query.memory"
TARGET = "query.target-p99"

_DECLARED = frozenset({CPU, MEMORY})
_USED: dict[str, frozenset[str]] = {
    "adaptive": _DECLARED | {TARGET},  # CPU until an operator's first rows have been measured
    "liu": frozenset(),
    "autoscale": _DECLARED,
    "true-rate": _DECLARED,
    "sps": frozenset({WORKERS}),
    "dps": frozenset({WORKERS}),
    "offline": frozenset({WORKERS}),
    "online": frozenset({WORKERS}),
    "n-storm": frozenset(),
    "n-storm-plus": frozenset(),
    "even": frozenset({WORKERS}),
    "isolation": frozenset({WORKERS, ISOLATE}),
    "r-storm": _DECLARED,
    "t-storm": frozenset(),
    "fixed": _DECLARED,
    "fixed-mean": _DECLARED,
    "fixed-peak": _DECLARED,
    "fixed-equal": _DECLARED,
    "spark": frozenset(),
}


def declared(topology: Topology) -> frozenset[str]:
    """Those of these options that are set for a topology."""
    found = {
        WORKERS: topology.workers is not None,
        ISOLATE: topology.isolate_nodes > 0,
        CPU: any(o.cpu_pct is not None for o in topology.operators),
        MEMORY: any(o.memory_mb is not None for o in topology.operators),
        TARGET: topology.target_p99_ms is not None,
    }
    return frozenset(name for name, is_set in found.items() if is_set)


def used_by(policy: str) -> frozenset[str] | None:
    """None: the policy is of another package, and it is not known what it uses."""
    return _USED.get(policy)


def without_effect(policy: str | None, options: Iterable[str]) -> list[str]:
    """A sentence for each of these options that the policy does not use. None: no policy is attached. What a policy
    that is attached later would go by is then not named, but a target is: its query expects to be held to it."""
    if policy is None:
        return [f"{TARGET} has no effect without a policy; it is for {_users(TARGET)}"] if TARGET in options else []
    used = used_by(policy)
    if used is None:
        return []
    return [
        f"{option} has no effect under the policy {policy}; it is for {_users(option)}"
        for option in sorted(set(options) - used)
    ]


def _users(option: str) -> str:
    return ", ".join(name for name, its in _USED.items() if option in its)
