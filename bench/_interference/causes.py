"""What may hold A's rows up while a case is measured: differences of what kernel and executors count.

- ``nodes``: how often each node's control group was stopped by its quota, and for how many seconds in all (version 1
  sums this over processors).
- ``executors``: CPU of the instances of A and of B against the rest of each executor's process: network, garbage
  collection, compilers.
- ``a_throttled_s``: for how long A's instances were held back by limits, in all.
- ``a_run_queue_s``: for how long A's threads could have run and did not, because others ran or, on most kernels,
  because a quota stopped their group; of ``a_threads``, those that ran from the beginning to the end.

A figure is null where the kernel does not have it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from barograph.engines.spark.bridge.telemetry import EpochSeen
from barograph.model import Instance, Metrics
from barograph.testing.local_cluster import LocalCluster
from bench._processes import cpu_s

OBSERVER = "interference"
Thread = tuple[int, int]
"""Process and thread."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Of a control group, since it was made."""

    times: int
    seconds: float


@dataclass(frozen=True)
class Reading:
    """At one moment. nodes: None where there is no such group. process_cpu_s: by executor. run_queue_s: by thread of A.
    metrics: since the reading before it."""

    nodes: Mapping[str, Stopped | None] = field(default_factory=dict)
    process_cpu_s: Mapping[str, float] = field(default_factory=dict)
    run_queue_s: Mapping[Thread, float] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=lambda: Metrics(()))
    executor_of: Mapping[Instance, str] = field(default_factory=dict)


def stopped_in(stat: str) -> Stopped:
    """From the text of cpu.stat: nanoseconds in version 1, microseconds in version 2."""
    found = {key: int(value) for key, value in (line.split() for line in stat.splitlines())}
    seconds = found["throttled_usec"] / 1e6 if "throttled_usec" in found else found["throttled_time"] / 1e9
    return Stopped(found["nr_throttled"], seconds)


def run_queue_s_in(schedstat: str) -> float:
    """Time on a run queue, from the text of a thread's schedstat: time on a processor, time waiting for one, turns."""
    return int(schedstat.split()[1]) / 1e9


def read(stage: LocalCluster, a: str, b: str) -> Reading:
    metrics = stage.engine.observe(OBSERVER).metrics
    epochs = [epoch for epoch in map(stage.engine.present, (a, b)) if epoch is not None]
    pids = {life.executor: life.pid for epoch in epochs for life in epoch.lives.values()}
    return Reading(
        _stopped(stage),
        {executor: cpu_s(pid) for executor, pid in pids.items()},
        _run_queue_s(epochs[0]),
        metrics,
        {i: life.executor for epoch in epochs for i, life in epoch.lives.items()},
    )


def _stopped(stage: LocalCluster) -> dict[str, Stopped | None]:
    groups = stage.cluster.run.groups
    names = stage.cluster.settings.node_names()
    if groups is None:
        return dict.fromkeys(names)
    return {name: stopped_in((groups.node(name) / "cpu.stat").read_text()) for name in names}


def _run_queue_s(of: EpochSeen) -> dict[Thread, float]:
    found: dict[Thread, float] = {}
    for life in of.lives.values():
        try:
            text = Path(f"/proc/{life.pid}/task/{life.tid}/schedstat").read_text()
        except OSError:  # it has just ended, or the kernel does not count this
            continue
        found[life.pid, life.tid] = run_queue_s_in(text)
    return found


def causes(before: Reading, after: Reading, a: str) -> dict[str, object]:
    """As JSON. ``after`` was read by the same observer next."""
    threads = before.run_queue_s.keys() & after.run_queue_s.keys()
    of_a = [i for i in after.executor_of if i.topology == a]
    return {
        "nodes": {node: _growth(before.nodes.get(node), now) for node, now in after.nodes.items()},
        "executors": {
            executor: _parts(after, executor, a, now - before.process_cpu_s[executor])
            for executor, now in sorted(after.process_cpu_s.items())
            if executor in before.process_cpu_s
        },
        "a_throttled_s": round(sum(after.metrics.row(i).throttled_s for i in of_a), 3),
        "a_run_queue_s": round(sum(after.run_queue_s[t] - before.run_queue_s[t] for t in threads), 3)
        if threads
        else None,
        "a_threads": len(threads),
    }


def _growth(before: Stopped | None, now: Stopped | None) -> dict[str, float] | None:
    if before is None or now is None:
        return None
    return {"stops": now.times - before.times, "stopped_s": round(now.seconds - before.seconds, 3)}


def _parts(of: Reading, executor: str, a: str, whole_s: float) -> dict[str, float]:
    mine = [i for i, where in of.executor_of.items() if where == executor]
    a_s = _cpu_s(of.metrics, (i for i in mine if i.topology == a))
    b_s = _cpu_s(of.metrics, (i for i in mine if i.topology != a))
    found = {"a_cpu_s": a_s, "b_cpu_s": b_s, "rest_cpu_s": whole_s - a_s - b_s}
    return {key: round(seconds, 3) for key, seconds in found.items()}


def _cpu_s(metrics: Metrics, instances: Iterable[Instance]) -> float:
    return sum(metrics.row(i).cpu_s for i in instances)
