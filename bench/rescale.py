"""Rescaling the stateful operator under load: its state is repartitioned between two epochs. About seven minutes.

JSON: ``keys``; ``changes``: ``pause_s`` (the gap in the output) and ``order_to_commit_s`` (until every instance of the
next run is up) as median, worst and count, and ``parts_s``, the medians of ``end_epoch`` (order until the last instance
has ended), ``split`` (until the next run is planned: commit, stop, repartition, start), ``launch`` (until its last
instance runs) and ``first_row``. ``after_loss``: the same of rescales that are ordered as soon as the executor that
replaces a killed one is there. ``kills``: each with what was killed, ``after_s`` the order, ``instances`` afterwards
and ``exact``. Bars: median pause 1.5 s with 12,000 keys; 1.25 times that after a loss; every kill exact.
"""

import random
import statistics
import threading
import time

from barograph.engines.spark.cluster.node_status import kill_executor
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.experiments.running.warm_up import warm_up
from barograph.model import Outcome, Plan, Rescale
from barograph.testing.local_cluster import LocalCluster, RunningQuery, open_local_cluster
from barograph.workloads.lines import LineShape
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._figures import Bar, figures, finish, say
from bench._whole_run import is_exact, whole_run
from bench.boundary import gap_around

KEYS = 12_000
RATE = 1_000
PARALLELISM = {"source": 2, "split": 2, "count": 2}
CHANGES = 10
WARM_CHANGES = 2
LOSSES = 8
EXECUTOR_KILLS = 3
DRIVER_KILLS = 2
SEED = 7


def main() -> int:
    draw = random.Random(SEED)
    kills: list[dict[str, object]] = []
    with open_local_cluster() as stage:
        warm_up(stage.spark, WORDCOUNT, PARALLELISM, repartition=True)
        changes, after_loss, was_exact = rescales(stage)
        kills += [executor_kill(stage, draw) for _ in range(EXECUTOR_KILLS)]
    kills += [driver_kill(draw) for _ in range(DRIVER_KILLS)]
    names = ("end_epoch", "split", "launch", "first_row")
    result = {
        "keys": KEYS,
        "changes": {
            "pause_s": figures([c["pause"] for c in changes]),
            "order_to_commit_s": figures([c["order_to_commit"] for c in changes]),
            "parts_s": {name: round(statistics.median(c[name] for c in changes), 3) for name in names},
            "exact": was_exact,
        },
        "after_loss": {
            "pause_s": figures([c["pause"] for c in after_loss]),
            "parts_s": {name: round(statistics.median(c[name] for c in after_loss), 3) for name in names},
        },
        "kills": kills,
    }
    pause_s = statistics.median(c["pause"] for c in changes)
    bars = [
        Bar("median pause, s", pause_s, at_most=1.5),
        Bar(
            "median pause soon after a loss, as a multiple of one without",
            statistics.median(c["pause"] for c in after_loss) / pause_s,
            at_most=1.25,
        ),
        Bar("exact", float(was_exact and all(k["exact"] for k in kills)), at_least=1.0),
    ]
    return finish(result, bars)


def rescales(stage: LocalCluster) -> tuple[list[dict[str, float]], list[dict[str, float]], bool]:
    """2 -> 4 -> 2 and so on, each after the output has resumed; then the same, each soon after an executor was lost."""
    found, after_loss = [], []
    lines = LineShape(vocabulary=KEYS, skew=0.5, seed=5)
    with stage.query("rescale", RATE, PARALLELISM, supervised=True, lines=lines) as counting:
        enough = time.monotonic() + 15.0  # by then nearly every word has occurred
        counting.settle(lambda: time.monotonic() > enough)
        for turn in range(CHANGES + WARM_CHANGES):
            parts = one_rescale(counting, 4 if turn % 2 == 0 else 2)
            say(", ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items()))
            if turn >= WARM_CHANGES:
                found.append(parts)
        for turn in range(LOSSES):
            lose_an_executor(stage, counting)
            after_loss.append(one_rescale(counting, 4 if turn % 2 == 0 else 2))
            say("after a loss: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in after_loss[-1].items()))
        return found, after_loss, counting.verdict().exact


def lose_an_executor(stage: LocalCluster, counting: RunningQuery) -> None:
    """Kill one that runs an instance, and wait until rows flow again and another one has taken its place."""
    assert isinstance(counting.query, Supervised)
    restarts = len(counting.query.restarts)
    victim = counting.executors()["count/1"]
    node = next(w.slot.node for w in stage.engine.workers() if w.executor == victim)
    kill_executor(stage.cluster.run, node, victim)
    query = counting.query
    counting.settle(lambda: len(query.restarts) > restarts, 120.0)
    before = counting.output()
    counting.settle(lambda: counting.output() > before + 1_000, 120.0)
    counting.settle(lambda: len(stage.engine.living()[0]) == stage.cluster.settings.nodes, 120.0)


def one_rescale(counting: RunningQuery, count: int) -> dict[str, float]:
    engine = counting.cluster.engine
    before = engine.present(counting.name)
    assert before is not None
    ordered_ms = time.time() * 1000
    outcome = engine.apply(Plan(rescales=(Rescale(counting.name, "count", count),)))
    assert outcome.ok, outcome.refused
    settled = int(time.time() * 100) + 60
    counting.settle(lambda: max(engine.output(counting.name)) >= settled)
    output = engine.output(counting.name)
    after = engine.present(counting.name)
    assert after is not None
    assert len([i for i in after.seated if i.operator == "count"]) == count
    gap_ms, resumed_ms = gap_around(sorted(output), ordered_ms)
    ended_ms = max(life.ended_ms for life in before.lives.values())
    started_ms = max(life.started_ms for life in after.lives.values())
    return {
        "pause": gap_ms / 1000,
        "order_to_commit": outcome.order_to_commit_s or 0.0,
        "end_epoch": (ended_ms - ordered_ms) / 1000,
        "split": (after.planned_ms - ended_ms) / 1000,
        "launch": (started_ms - after.planned_ms) / 1000,
        "first_row": (resumed_ms - started_ms) / 1000,
    }


def executor_kill(stage: LocalCluster, draw: random.Random) -> dict[str, object]:
    """Kill an executor at a random moment of a rescale."""
    lines = LineShape(vocabulary=KEYS, skew=0.5, seed=5)
    with stage.query("killed", RATE, PARALLELISM, supervised=True, lines=lines) as counting:
        counting.settle(lambda: len(stage.engine.living()[0]) == stage.cluster.settings.nodes, 120.0)
        counting.settle(lambda: counting.output() > 10_000)
        victim = draw.choice(stage.engine.workers())
        after_s = draw.uniform(0.0, 1.5)
        outcomes: list[Outcome] = []
        plan = Plan(rescales=(Rescale(counting.name, "count", 4),))
        order = threading.Thread(target=lambda: outcomes.append(stage.engine.apply(plan)))
        order.start()
        order.join(after_s)
        kill_executor(stage.cluster.run, victim.slot.node, victim.executor)
        order.join(120.0)
        counting.settle(lambda: bool(counting.executors()), 120.0)
        before = counting.output()
        counting.settle(lambda: counting.output() > before + 5_000, 120.0)
        instances = len([i for i in counting.executors() if i.startswith("count/")])
        exact = counting.verdict().exact
        said = "; ".join(r.reason for o in outcomes for r in o.refused)
    found = {"killed": "executor", "after_s": round(after_s, 3), "instances": instances, "exact": exact, "said": said}
    say(str(found))
    return found


def driver_kill(draw: random.Random) -> dict[str, object]:
    """Kill the driver at a random moment of a rescale; the run restarts it."""
    after_s = draw.uniform(0.0, 1.5)
    report, said = whole_run(
        "wordcount", "--seconds", "40", "--load", f"constant {RATE}", "--parallelism", "count=2",
        "--at", "15:scale count=4", "--at", f"{15 + after_s:.3f}:kill driver",
    )  # fmt: skip
    if report is None:
        say(said)
        return {"killed": "driver", "after_s": round(after_s, 3), "exact": False, "said": said[-300:]}
    said = "; ".join(f"{a['action']}: {a['reason'] or 'done'}" for a in report["actions"])
    found = {"killed": "driver", "after_s": round(after_s, 3), "exact": is_exact(report), "said": said}
    say(str(found))
    return found
