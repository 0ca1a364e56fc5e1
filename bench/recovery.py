"""The cost of a kill -9 of an executor, by the length of epochs, and of a second kill soon after the first.

Three nodes of 0.6 cores, so that an executor that restarts takes the CPU of its own node and not of the others. For
epochs of 5, 20 and 60 s a random executor that runs instances is killed BENCH_KILLS (20) times, in the middle of an
epoch and when every instance is on its ordered worker; so each executor is replaced several times. Then BENCH_PAIRS
(10) pairs in epochs of 60 s: the second kill comes 10 s after the first. No recovery target shortens epochs here; after
each kill cuts bring instances back to the new executor sooner. About an hour; BENCH_KILLS=3 BENCH_PAIRS=2 takes about
10 minutes.

JSON: per epoch length ``down_s`` (from the kill to the first row out, which is a replayed one), ``pause_s`` (the
longest pause of the output around it), ``replayed_rows``, ``catch_up_s`` (from the first row out until the backlog is
gone), ``late_rows`` (30 s or more from due to the sink), ``home_pause_s`` (the longest pause from then until all
instances are back on the new executor) as median, worst and count; ``parts_s``: medians of ``notice`` (until the
query's end is known), ``start`` (until its next run is planned), ``launch`` (until its last instance runs),
``first_row``. ``pairs``: the same of both kills, ``first`` and ``second``; ``again``: rows that the second kill
replayed, as part of those that the first one had. ``causes``: why query runs died. ``exact``: no row lost or counted
twice over all kills.

Bars: median down time 2 s, worst 5 s; a second kill replays less than the first (without an early commit it replays all
of that again, and more); exact.
"""

import os
import random
import statistics
import time
from collections.abc import Callable
from itertools import pairwise

from barograph.engines.spark.cluster.node_status import kill_executor
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.observer import MESSAGE_TIMEOUT_S
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.experiments.running.warm_up import warm_up
from barograph.model import Instance, Placement, Plan, Slot
from barograph.testing.local_cluster import PARALLELISM, LocalCluster, RunningQuery, open_local_cluster
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._figures import Bar, figures, finish, say

KILLS = int(os.environ.get("BENCH_KILLS", "20"))
PAIRS = int(os.environ.get("BENCH_PAIRS", "10"))
EPOCHS_S = (5.0, 20.0, 60.0)
APART_S = 10.0
HOME_CUT_S = 10.0
NODES = ClusterSettings(nodes=3, node_cpu=0.6, seats=8)
RATE = 400
PATIENCE_S = 180.0
Parts = dict[str, float]
Home = dict[Instance, Slot]


def main() -> int:
    result: dict[str, object] = {}
    found: list[Parts] = []
    causes: list[str] = []
    chance = random.Random(7)
    with open_local_cluster(NODES) as stage:
        warm_up(stage.spark, WORDCOUNT, PARALLELISM, say)
        stage.cluster.fence()
        # Warm-up: the first kill loads classes that later ones need.
        exact = one_query(stage, 5.0, lambda query, home: one_kill(stage, query, home, chance, 5.0))
        for epoch_s in EPOCHS_S if KILLS else ():
            measured: list[Parts] = []

            def kills(query: RunningQuery, home: Home, of_s: float = epoch_s, to: list[Parts] = measured) -> None:
                for _ in range(KILLS):
                    to.append(one_kill(stage, query, home, chance, of_s))
                causes.extend(r.cause for r in handle(query).restarts)

            exact = one_query(stage, epoch_s, kills) and exact
            found += measured
            result[f"epoch_{epoch_s:g}s"] = summary(measured)
        both: list[tuple[Parts, Parts]] = []

        def pairs(query: RunningQuery, home: Home) -> None:
            for _ in range(PAIRS):
                first = one_kill(stage, query, home, chance, 60.0, settle=False)
                both.append((first, one_kill(stage, query, home, chance, 60.0, apart_s=APART_S)))
            causes.extend(r.cause for r in handle(query).restarts)

        exact = one_query(stage, 60.0, pairs) and exact
    again = [second["replayed"] / max(1.0, first["replayed"]) for first, second in both]
    first, second = summary([f for f, _ in both]), summary([s for _, s in both])
    result |= {"pairs": {"first": first, "second": second, "again": figures(again)}}
    kinds = [kind_of(cause) for cause in causes]
    result |= {"causes": {kind: kinds.count(kind) for kind in sorted(set(kinds))}, "exact": exact}
    return finish(result, bars_of([p["down"] for p in found], again, exact))


def bars_of(down_s: list[float], again: list[float], exact: bool) -> list[Bar]:
    bars = [Bar("exact", float(exact), at_least=1.0)]
    if down_s:
        bars += [
            Bar("median down time, s", statistics.median(down_s), at_most=2.0),
            Bar("worst down time, s", max(down_s), at_most=5.0),
        ]
    if again:
        bars.append(Bar("replayed by a second kill, as part of the first's", max(again), at_most=1.0))
    return bars


def kind_of(cause: str) -> str:
    """Without the numbers of executors and nodes."""
    return " ".join(word for word in cause.split(":")[0].split() if not any(c.isdigit() for c in word))


def handle(counting: RunningQuery) -> Supervised:
    assert isinstance(counting.query, Supervised)
    return counting.query


def one_query(stage: LocalCluster, epoch_s: float, kills: Callable[[RunningQuery, Home], object]) -> bool:
    """Returns whether every row was counted once."""
    with stage.query(f"epoch-{epoch_s:g}", rate=RATE, epoch_s=epoch_s, supervised=True) as counting:
        slots = [w.slot for w in stage.engine.workers()]
        topology = stage.engine.observe().topology(counting.name)
        home = {instance: slots[k % len(slots)] for k, instance in enumerate(topology.instances())}
        outcome = stage.engine.apply(Plan(Placement(home)))
        assert outcome.ok, outcome.refused
        kills(counting, home)
        return counting.verdict().exact


def one_kill(
    stage: LocalCluster, counting: RunningQuery, home: Home, chance: random.Random, epoch_s: float,
    apart_s: float | None = None, settle: bool = True,
) -> Parts:  # fmt: skip
    """apart_s: so long after the last kill; None: in the middle of an epoch, when all instances are on their ordered
    workers. settle: wait until they are there again."""
    query = handle(counting)

    def all_are_home() -> bool:
        slots = {w.executor: w.slot for w in stage.engine.workers()}
        present = {name: slots.get(executor) for name, executor in counting.executors().items()}
        return present == {f"{i.operator}/{i.index}": slot for i, slot in home.items()}

    if apart_s is None:
        counting.settle(all_are_home, PATIENCE_S, look_s=0.5)
        begun = stage.engine.present(counting.name)
        assert begun is not None
        middle_ms = begun.planned_ms + epoch_s * 500
        counting.settle(lambda: time.time() * 1000 > middle_ms and bool(counting.executors()), PATIENCE_S)
    else:
        due_ms = query.restarts[-1].at_ms + apart_s * 1000
        counting.settle(lambda: time.time() * 1000 > due_ms and bool(counting.executors()), PATIENCE_S)
    executor = chance.choice(sorted(set(counting.executors().values())))
    node = next(w.slot.node for w in stage.engine.workers() if w.executor == executor)
    earlier, late = len(query.restarts), late_rows(stage, counting)
    killed_ms = time.time() * 1000
    kill_executor(stage.cluster.run, node, executor)
    counting.settle(lambda: len(query.restarts) > earlier, PATIENCE_S, look_s=0.5)
    after = stage.engine.present(counting.name)
    assert after is not None
    restart = query.restarts[earlier]
    parts = {"replayed": float(restart.rows.read)}
    if settle:
        parts["catch_up_ms"] = await_caught_up(counting)
        bring_home(stage, counting, all_are_home)
        await_caught_up(counting)
    else:
        out = counting.output()
        counting.settle(lambda: counting.output() > out + RATE, PATIENCE_S)
    out_ms = [t * 10.0 for t in sorted(stage.engine.output(counting.name))]
    first_ms = next(t for t in out_ms if t > after.planned_ms)
    started_ms = max(life.started_ms for life in after.lives.values())
    parts |= {
        "down": (first_ms - killed_ms) / 1000,
        "pause": max(b - a for a, b in pairwise(out_ms) if killed_ms - 500 < b <= first_ms) / 1000,
        "notice": (restart.at_ms - killed_ms) / 1000,
        "start": (after.planned_ms - restart.at_ms) / 1000,
        "launch": (started_ms - after.planned_ms) / 1000,
        "first_row": (first_ms - started_ms) / 1000,
        "late": float(late_rows(stage, counting) - late),
    }
    if settle:
        parts["catch_up"] = max(0.0, parts.pop("catch_up_ms") - first_ms) / 1000
        parts["home"] = max(b - a for a, b in pairwise(out_ms) if a >= first_ms) / 1000
    shown = ", ".join(f"{k} {v:.2f}" for k, v in parts.items())
    say(f"epoch {epoch_s:g} s, executor {executor} on {node}: {shown}; {restart.cause[:80]}")
    return parts


def bring_home(stage: LocalCluster, counting: RunningQuery, all_are_home: Callable[[], bool]) -> None:
    """Instances return to a new executor when an epoch begins: a cut each 10 s saves waiting for a long one to end."""
    cut_at_s = time.monotonic() + HOME_CUT_S

    def home_or_cut() -> bool:
        nonlocal cut_at_s
        if all_are_home():
            return True
        if time.monotonic() >= cut_at_s:
            stage.engine.apply(Plan(cuts=(counting.name,)))
            cut_at_s = time.monotonic() + HOME_CUT_S
        return False

    counting.settle(home_or_cut, PATIENCE_S, look_s=0.5)


def late_rows(stage: LocalCluster, counting: RunningQuery) -> int:
    stage.engine.refresh()
    return stage.engine.latency(counting.name, "due").above(MESSAGE_TIMEOUT_S * 1000)


def await_caught_up(counting: RunningQuery) -> float:
    """When rows leave no faster than they become due: the backlog is cleared. Milliseconds since 1970."""
    words_s = RATE * counting.inputs[0].lines.words_per_line

    def caught_up() -> bool:
        output, now = counting.cluster.engine.output(counting.name), int(time.time() * 100) - 50
        recent = sum(output.get(t, 0) for t in range(now - 100, now))
        return 0 < recent < 1.2 * words_s

    counting.settle(caught_up, PATIENCE_S)
    return time.time() * 1000 - 1000  # the start of the second that was examined


def summary(measured: list[Parts]) -> dict[str, object]:
    def of(name: str) -> list[float]:
        return [p[name] for p in measured if name in p]

    shown = {"down_s": "down", "pause_s": "pause", "replayed_rows": "replayed", "home_pause_s": "home",
             "catch_up_s": "catch_up", "late_rows": "late"}  # fmt: skip
    parts = {name: of(name) for name in ("notice", "start", "launch", "first_row")}
    return {
        **{name: figures(of(part)) for name, part in shown.items()},
        "parts_s": {name: round(statistics.median(values), 3) for name, values in parts.items() if values},
    }
