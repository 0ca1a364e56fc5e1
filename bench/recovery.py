"""The cost of a kill -9 of an executor, by the length of epochs, and of a second kill soon after the first.

Three nodes of 0.6 cores, so that an executor that restarts takes the CPU of its own node and not of the others. For
epochs of 5, 20 and 60 s a random executor that runs instances is killed BENCH_KILLS (20) times, in the middle of an
epoch and when every instance is on its ordered worker; so each executor is replaced several times. A node is not
avoided for longer the more of its executors were killed. Then BENCH_PAIRS
(10) pairs in epochs of 60 s: the second kill comes 10 s after the first. No recovery target shortens epochs there;
after each kill cuts bring instances back to the new executor sooner. Last BENCH_BOUNDED (4) kills with the default
recovery target, under a trigger of 10 minutes, so that only the target bounds what is replayed: each comes when the
epoch is nearly as old as the supervisor lets it become, the worst moment. About an hour and a half;
BENCH_KILLS=3 BENCH_PAIRS=2 BENCH_BOUNDED=1 takes about 20 minutes.

JSON: per epoch length ``down_s`` (from the kill to the first row out, which is a replayed one), ``pause_s`` (the
longest pause of the output around it), ``replayed_rows``, ``catch_up_s`` (from the first row out until the backlog is
gone), ``recovered_s`` (from the kill until then), ``epoch_s`` (how old the epoch was), ``late_rows`` (30 s or more from
due to the sink), ``home_pause_s`` (the longest pause from then until all instances are back on the new executor) as
median, worst and count; ``parts_s``: medians of ``notice`` (until the query's end is known), ``start`` (until its next
run is planned), ``launch`` (until its last instance runs), ``first_row``. ``pairs``: the same of both kills, ``first``
and ``second``; ``again``: rows that the second kill replayed, as part of those that the first one had; ``cut_short``:
first kills whose backlog was not gone when the second came, which are not in ``catch_up_s``. ``bounded``: the same of
kills under the recovery target. ``causes``: why query runs died. ``exact``: no row lost or counted twice over all
kills.

Bars: median down time 2 s, worst 5 s, in each of these groups; a second kill replays less than the first (without an
early commit it replays all of that again, and more); under the recovery target ``recovered_s`` is at most the target;
exact.
"""

import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from barograph.config import default
from barograph.engines.epoch_length import Recovery
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
BOUNDED = int(os.environ.get("BENCH_BOUNDED", "4"))
EPOCHS_S = (5.0, 20.0, 60.0)
APART_S = 10.0
TARGET_S: float = default("recovery")
TRIGGER_S = 600.0
OLD = 0.9  # of the longest epoch that the target allows
HOME_CUT_S = 10.0
NODES = ClusterSettings(nodes=3, node_cpu=0.6, seats=8)
RATE = 400
PATIENCE_S = 180.0
LONGEST_S = 600.0  # an epoch may become five minutes old
Parts = dict[str, float]
Home = dict[Instance, Slot]


def main() -> int:
    result: dict[str, Any] = {}
    single: dict[str, list[Parts]] = {}
    causes: list[str] = []
    chance = random.Random(7)
    with open_local_cluster(NODES) as stage:
        warm_up(stage.spark, WORDCOUNT, PARALLELISM, say)
        stage.cluster.fence()
        # Warm-up: the first kill loads classes that later ones need.
        exact = one_query(stage, 5.0, lambda query, home: one_kill(stage, query, home, chance, lambda: 2.5))
        for epoch_s in EPOCHS_S if KILLS else ():
            measured: list[Parts] = []

            def kills(query: RunningQuery, home: Home, of_s: float = epoch_s, to: list[Parts] = measured) -> None:
                for _ in range(KILLS):
                    to.append(one_kill(stage, query, home, chance, lambda: of_s / 2))
                causes.extend(r.cause for r in handle(query).restarts)

            exact = one_query(stage, epoch_s, kills) and exact
            single[f"epoch_{epoch_s:g}s"] = measured
        both: list[tuple[Parts, Parts]] = []

        def pairs(query: RunningQuery, home: Home) -> None:
            for _ in range(PAIRS):
                first = one_kill(stage, query, home, chance, lambda: 30.0, settle=False)
                second = one_kill(stage, query, home, chance, lambda: 0.0, apart_s=APART_S)
                both.append((first | catch_up_between(query, first, second), second))
            causes.extend(r.cause for r in handle(query).restarts)

        exact = one_query(stage, 60.0, pairs) and exact
        bounded: list[Parts] = []

        def under_target(query: RunningQuery, home: Home) -> None:
            def nearly_over() -> float:
                return OLD * stage.supervisor.bounds.most_s.get(query.name, float("inf"))

            bounded.extend(one_kill(stage, query, home, chance, nearly_over) for _ in range(BOUNDED))
            causes.extend(r.cause for r in handle(query).restarts)

        exact = one_query(stage, TRIGGER_S, under_target, Recovery()) and exact
    again = [second["replayed"] / max(1.0, first["replayed"]) for first, second in both]
    cut_short = sum("catch_up" not in first for first, _ in both)
    of_pairs = {"first": [first for first, _ in both], "second": [second for _, second in both]}
    result |= {name: summary(measured) for name, measured in single.items()}
    result["pairs"] = {name: summary(measured) for name, measured in of_pairs.items()}
    result["pairs"] |= {"again": figures(again), "cut_short": cut_short}
    result["bounded"] = summary(bounded)
    kinds = [kind_of(cause) for cause in causes]
    result |= {"causes": {kind: kinds.count(kind) for kind in sorted(set(kinds))}, "exact": exact}
    groups = {**single, **{f"pairs, {name}": of for name, of in of_pairs.items()}, "bounded": bounded}
    down_s = {name: [p["down"] for p in measured] for name, measured in groups.items()}
    return finish(result, bars_of(down_s, again, [p["recovered"] for p in bounded], exact))


def bars_of(
    down_s: Mapping[str, Sequence[float]], again: Sequence[float], recovered_s: Sequence[float], exact: bool
) -> list[Bar]:
    """down_s: by group of kills, so that no slow one can hide behind the others."""
    bars = [Bar("exact", float(exact), at_least=1.0)]
    for name, measured in down_s.items():
        if measured:
            bars.append(Bar(f"median down time, s: {name}", statistics.median(measured), at_most=2.0))
            bars.append(Bar(f"worst down time, s: {name}", max(measured), at_most=5.0))
    if again:
        bars.append(Bar("replayed by a second kill, as part of the first's", max(again), at_most=1.0))
    if recovered_s:
        bars.append(Bar("worst recovery under the target, s", max(recovered_s), at_most=TARGET_S))
    return bars


def kind_of(cause: str) -> str:
    """Without the numbers of executors and nodes."""
    return " ".join(word for word in cause.split(":")[0].split() if not any(c.isdigit() for c in word))


def handle(counting: RunningQuery) -> Supervised:
    assert isinstance(counting.query, Supervised)
    return counting.query


def one_query(
    stage: LocalCluster, epoch_s: float, kills: Callable[[RunningQuery, Home], object], recovery: Recovery | None = None
) -> bool:
    """Returns whether every row was counted once."""
    with stage.query(f"epoch-{epoch_s:g}", rate=RATE, epoch_s=epoch_s, supervised=True, recovery=recovery) as counting:
        slots = [w.slot for w in stage.engine.workers()]
        topology = stage.engine.observe().topology(counting.name)
        home = {instance: slots[k % len(slots)] for k, instance in enumerate(topology.instances())}
        outcome = stage.engine.apply(Plan(Placement(home)))
        assert outcome.ok, outcome.refused
        kills(counting, home)
        return counting.verdict().exact


def one_kill(
    stage: LocalCluster, counting: RunningQuery, home: Home, chance: random.Random, old_s: Callable[[], float],
    apart_s: float | None = None, settle: bool = True,
) -> Parts:  # fmt: skip
    """old_s: how old the epoch is then, and all instances are on their ordered workers. apart_s: instead so long after
    the last kill. settle: wait until they are there again."""
    query = handle(counting)

    def all_are_home() -> bool:
        slots = {w.executor: w.slot for w in stage.engine.workers()}
        present = {name: slots.get(executor) for name, executor in counting.executors().items()}
        return present == {f"{i.operator}/{i.index}": slot for i, slot in home.items()}

    if apart_s is None:
        counting.settle(all_are_home, PATIENCE_S, look_s=0.5)
        counting.settle(lambda: age_s(stage, counting) >= old_s() and bool(counting.executors()), LONGEST_S)
    else:
        due_ms = query.restarts[-1].at_ms + apart_s * 1000
        counting.settle(lambda: time.time() * 1000 > due_ms and bool(counting.executors()), PATIENCE_S)
    executor = chance.choice(sorted(set(counting.executors().values())))
    node = next(w.slot.node for w in stage.engine.workers() if w.executor == executor)
    earlier, late = len(query.restarts), late_rows(stage, counting)
    parts = {"epoch": age_s(stage, counting), "killed_ms": time.time() * 1000}
    killed_ms = parts["killed_ms"]
    # Instances avoid a node whose executors die again and again, for up to ten minutes. That is not what is measured.
    stage.engine._orders.returns.forget([executor])
    kill_executor(stage.cluster.run, node, executor)
    counting.settle(lambda: len(query.restarts) > earlier, PATIENCE_S, look_s=0.5)
    after = stage.engine.present(counting.name)
    assert after is not None
    restart = query.restarts[earlier]
    parts["replayed"] = float(restart.rows.read)
    if settle:
        caught_up_ms = await_caught_up(counting)
        bring_home(stage, counting, all_are_home)
        await_caught_up(counting)
    else:
        out = counting.output()
        counting.settle(lambda: counting.output() > out + RATE, PATIENCE_S)
    out_ms = [t * 10.0 for t in sorted(stage.engine.output(counting.name))]
    first_ms = next(t for t in out_ms if t > after.planned_ms)
    started_ms = max(life.started_ms for life in after.lives.values())
    parts |= {
        "first_ms": first_ms,
        "down": (first_ms - killed_ms) / 1000,
        "pause": max(b - a for a, b in pairwise(out_ms) if killed_ms - 500 < b <= first_ms) / 1000,
        "notice": (restart.at_ms - killed_ms) / 1000,
        "start": (after.planned_ms - restart.at_ms) / 1000,
        "launch": (started_ms - after.planned_ms) / 1000,
        "first_row": (first_ms - started_ms) / 1000,
        "late": float(late_rows(stage, counting) - late),
    }
    if settle:
        parts["catch_up"] = max(0.0, caught_up_ms - first_ms) / 1000
        parts["recovered"] = (first_ms - killed_ms) / 1000 + parts["catch_up"]
        parts["home"] = max(b - a for a, b in pairwise(out_ms) if a >= first_ms) / 1000
    shown = ", ".join(f"{k} {v:.2f}" for k, v in parts.items() if not k.endswith("_ms"))
    say(f"executor {executor} on {node}: {shown}; {restart.cause[:80]}")
    return parts


def age_s(stage: LocalCluster, counting: RunningQuery) -> float:
    """Of the present epoch."""
    present = stage.engine.present(counting.name)
    return 0.0 if present is None else time.time() - present.planned_ms / 1000


def catch_up_between(counting: RunningQuery, first: Parts, second: Parts) -> Parts:
    """``catch_up`` of a kill, if its backlog was gone before the next kill came."""
    caught_up_ms = last_above_ms(counting.cluster.engine.output(counting.name), first["first_ms"], second["killed_ms"],
                                 1.2 * words_s(counting))  # fmt: skip
    if second["killed_ms"] - caught_up_ms < 1000:
        return {}
    return {"catch_up": (caught_up_ms - first["first_ms"]) / 1000}


def last_above_ms(output: Mapping[int, int], from_ms: float, to_ms: float, rows_s: float) -> float:
    """The end of the last second between two times in which more than ``rows_s`` rows came out. Output by centisecond;
    the first time if there is no such second."""
    ends = range(int(to_ms / 10), int(from_ms / 10) + 99, -1)
    found = next((e for e in ends if sum(output.get(t, 0) for t in range(e - 100, e)) > rows_s), None)
    return from_ms if found is None else found * 10.0


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
    most = 1.2 * words_s(counting)

    def caught_up() -> bool:
        output, now = counting.cluster.engine.output(counting.name), int(time.time() * 100) - 50
        recent = sum(output.get(t, 0) for t in range(now - 100, now))
        return 0 < recent < most

    counting.settle(caught_up, PATIENCE_S)
    return time.time() * 1000 - 1000  # the start of the second that was examined


def words_s(counting: RunningQuery) -> float:
    return float(RATE * counting.inputs[0].lines.words_per_line)


def summary(measured: list[Parts]) -> dict[str, object]:
    def of(name: str) -> list[float]:
        return [p[name] for p in measured if name in p]

    shown = {"down_s": "down", "pause_s": "pause", "replayed_rows": "replayed", "home_pause_s": "home",
             "catch_up_s": "catch_up", "recovered_s": "recovered", "epoch_s": "epoch", "late_rows": "late"}  # fmt: skip
    parts = {name: of(name) for name in ("notice", "start", "launch", "first_row")}
    return {
        **{name: figures(of(part)) for name, part in shown.items()},
        "parts_s": {name: round(statistics.median(values), 3) for name, values in parts.items() if values},
    }
