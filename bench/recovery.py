"""The cost of a kill -9 of an executor: ten kills, with epochs of 5, 20 and 60 s.

Three nodes of 0.6 cores, so that an executor that restarts takes the CPU of its own node and not of the others.
A kill comes in the middle of an epoch, when every instance is on its ordered worker and the last kill is over.

JSON: per epoch length ``down_s`` (from the kill to the first row out, which is a replayed one), ``pause_s`` (the
longest pause of the output around it), ``replayed_rows``, ``catch_up_s`` (from the first row out until the backlog is
gone), ``home_pause_s`` (the longest pause from then until all instances are back on the new executor) as median,
worst and count; ``parts_s``: medians of ``notice`` (until the query's end is known), ``start`` (until its next run is
planned), ``launch`` (until its last instance runs), ``first_row``. ``exact``: no row lost or counted twice over all
kills. Bar: median down time 2 s.
"""

import statistics
import sys
import time
from itertools import pairwise

from barograph.engines.spark.cluster.node_status import kill_executor
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.experiments.running.warm_up import warm_up
from barograph.model import Instance, Placement, Plan, Slot
from barograph.testing.local_cluster import PARALLELISM, LocalCluster, RunningQuery, open_local_cluster
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._figures import Bar, figures, finish

KILLS = {5.0: 3, 20.0: 4, 60.0: 3}
NODES = ClusterSettings(nodes=3, node_cpu=0.6, seats=8)
RATE = 400
Parts = dict[str, float]


def main() -> int:
    result: dict[str, object] = {}
    found: list[Parts] = []
    exact = True
    with open_local_cluster(NODES) as stage:
        warm_up(stage.spark, WORDCOUNT, PARALLELISM)
        stage.cluster.fence()
        one_query(stage, 5.0, 1)  # warm-up: the first kill loads classes that later ones need
        for epoch_s, kills in KILLS.items():
            measured, was_exact = one_query(stage, epoch_s, kills)
            exact = exact and was_exact
            found += measured
            result[f"epoch_{epoch_s:g}s"] = summary(measured)
    result["exact"] = exact
    bars = [
        Bar("median down time, s", statistics.median(p["down"] for p in found), at_most=2.0),
        Bar("exact", float(exact), at_least=1.0),
    ]
    return finish(result, bars)


def one_query(stage: LocalCluster, epoch_s: float, kills: int) -> tuple[list[Parts], bool]:
    with stage.query(f"epoch-{epoch_s:g}", rate=RATE, epoch_s=epoch_s, supervised=True) as counting:
        slots = [w.slot for w in stage.engine.workers()]
        (topology,) = stage.engine.observe().topologies
        home = {instance: slots[k % len(slots)] for k, instance in enumerate(topology.instances())}
        outcome = stage.engine.apply(Plan(Placement(home)))
        assert outcome.ok, outcome.refused
        found = [one_kill(stage, counting, home, k, epoch_s) for k in range(kills)]
        return found, counting.verdict().exact


def one_kill(
    stage: LocalCluster, counting: RunningQuery, home: dict[Instance, Slot], earlier: int, epoch_s: float
) -> Parts:
    """In the middle of an epoch, when all instances are on their ordered workers."""
    query = counting.query
    assert isinstance(query, Supervised)

    def all_are_home() -> bool:
        slots = {w.executor: w.slot for w in stage.engine.workers()}
        present = {name: slots.get(executor) for name, executor in counting.executors().items()}
        return present == {f"{i.operator}/{i.index}": slot for i, slot in home.items()}

    counting.settle(all_are_home, 120.0, look_s=0.5)
    begun = stage.engine.present(counting.name)
    assert begun is not None
    counting.settle(lambda: time.time() * 1000 > begun.planned_ms + epoch_s * 500 and bool(counting.executors()), 120.0)
    executor = counting.executors()["count/1"]
    node = next(w.slot.node for w in stage.engine.workers() if w.executor == executor)
    killed_ms = time.time() * 1000
    kill_executor(stage.cluster.run, node, executor)
    counting.settle(lambda: len(query.restarts) > earlier, 120.0, look_s=0.5)
    after = stage.engine.present(counting.name)
    assert after is not None
    restart = query.restarts[-1]
    caught_up_ms = await_caught_up(counting)
    counting.settle(all_are_home, 120.0, look_s=0.5)
    await_caught_up(counting)
    out_ms = [t * 10.0 for t in sorted(stage.engine.output(counting.name))]
    first_ms = next(t for t in out_ms if t > after.planned_ms)
    pause_ms = max(b - a for a, b in pairwise(out_ms) if killed_ms - 500 < b <= first_ms)
    home_ms = max(b - a for a, b in pairwise(out_ms) if a >= first_ms)
    started_ms = max(life.started_ms for life in after.lives.values())
    parts = {
        "down": (first_ms - killed_ms) / 1000,
        "pause": pause_ms / 1000,
        "replayed": float(restart.rows.read),
        "catch_up": max(0.0, caught_up_ms - first_ms) / 1000,
        "home": home_ms / 1000,
        "notice": (restart.at_ms - killed_ms) / 1000,
        "start": (after.planned_ms - restart.at_ms) / 1000,
        "launch": (started_ms - after.planned_ms) / 1000,
        "first_row": (first_ms - started_ms) / 1000,
    }
    print(f"epoch {epoch_s:g} s: {', '.join(f'{k} {v:.2f}' for k, v in parts.items())}", file=sys.stderr, flush=True)
    return parts


def await_caught_up(counting: RunningQuery) -> float:
    """When rows leave no faster than they become due: the backlog is cleared. Milliseconds since 1970."""
    words_s = RATE * counting.inputs[0].lines.words_per_line

    def caught_up() -> bool:
        output, now = counting.cluster.engine.output(counting.name), int(time.time() * 100) - 50
        recent = sum(output.get(t, 0) for t in range(now - 100, now))
        return 0 < recent < 1.2 * words_s

    counting.settle(caught_up, 120.0)
    return time.time() * 1000 - 1000  # the start of the second that was examined


def summary(measured: list[Parts]) -> dict[str, object]:
    return {
        "down_s": figures([p["down"] for p in measured]),
        "pause_s": figures([p["pause"] for p in measured]),
        "replayed_rows": figures([p["replayed"] for p in measured]),
        "home_pause_s": figures([p["home"] for p in measured]),
        "catch_up_s": figures([p["catch_up"] for p in measured]),
        "parts_s": {
            name: round(statistics.median(p[name] for p in measured), 3)
            for name in ("notice", "start", "launch", "first_row")
        },
    }
