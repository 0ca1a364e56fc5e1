"""A steered word count while something dies by kill -9 again and again: executor, a node's worker, controller. 30 min.

BENCH_SECONDS (1800) says how long, BENCH_SEED (7) in which order. Each blow falls 20 s after rows flow again. JSON:
``seconds``, ``seed``; ``kills``: by kind; ``recovery_s``: by kind, from the blow until rows flow again (a controller:
until it has done a cycle); ``query_restarts``: each with ``cause`` and ``down_s``; ``controller_starts``, ``said``
(by the keepers); ``rows``: ``due``, ``counted``, ``lost``, ``counted_twice``, ``checksum_ok``; ``resident_mb``: by
kind of process (``driver_python``, ``driver_java``, ``executors``, ``daemons``: master and workers, ``controller``) the
median sum in minutes 10 to 13 (``early``) and in the last three (``late``; in a shorter run the same tenths of it),
``growth``, and ``all`` together; executors die every few minutes, so their sum is that of young ones; ``history``:
``entries``, ``gaps_marked``, ``holes`` (not marked); ``left_over``: processes and control groups that outlived the run.

Bars: every row counted once; no hole; a marked gap for each controller that was killed; nothing left over; resident
memory of all, and of the driver's two processes, at most 1.05 times as much (only in a run of at least 30 minutes:
before that, code is still being compiled). No node is released here: a sleeping one would hide what the others take.
"""

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from barograph.beat import Keeper, last_sign
from barograph.engines.spark.fence import accounts_of
from barograph.engines.spark.keeper import NodeKeeper
from barograph.engines.spark.nodes import executors_of, kill_executor
from barograph.engines.spark.processes import identify, kill, marked
from barograph.engines.spark.runs import Run
from barograph.engines.spark.settings import ClusterSettings
from barograph.engines.spark.supervise import Supervised
from barograph.experiments.stage import PARALLELISM, Counting, Stage, open_stage
from barograph.experiments.steering import Steering
from barograph.experiments.verdict import Verdict
from barograph.experiments.warm import warm_up
from barograph.history.read import gaps, rows
from bench._figures import Bar, figures, finish

SECONDS = float(os.environ.get("BENCH_SECONDS", "1800"))
SEED = int(os.environ.get("BENCH_SEED", "7"))
WHOLE_S = 1800.0
KINDS = ("executor", "worker", "controller")
CALM_S = 20.0
SAMPLE_S = 5.0
FLOW_S = 180.0  # a node that is to come back, and a query after it, take no longer
RATE = 300
EPOCH_S = 20.0


@dataclass
class Watch:
    """What is seen while it runs. samples: (seconds since the start, kind of process -> MB)."""

    began_s: float = field(default_factory=time.monotonic)
    samples: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    recovery_s: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    @property
    def at_s(self) -> float:
        return time.monotonic() - self.began_s


def main() -> int:
    watch = Watch()
    with tempfile.TemporaryDirectory(prefix="barograph-soak-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        steering = Steering("adaptive", 2.0, history=folder / "history")
        with open_stage(ClusterSettings(3, 0.6, 8)) as stage:
            run = stage.cluster.run
            nodes = NodeKeeper(stage.cluster)
            try:
                warm_up(stage.spark, PARALLELISM, say)
                with stage.wordcount("soak", rate=RATE, epoch_s=EPOCH_S, supervised=True) as counting:
                    stage.cluster.fence()
                    with steering.start(stage.supervisor.serve().path, folder) as keeper:
                        watch.began_s = time.monotonic()
                        strike_on(stage, counting, keeper, watch)
                    verdict = counting.verdict()
                    assert isinstance(counting.query, Supervised)
                    restarts = counting.query.restarts
            finally:
                nodes.close()
        history = read_history(folder / "history")
        left = left_over(run, keeper)
    result = {
        "seconds": SECONDS, "seed": SEED,
        "kills": {kind: len(found) for kind, found in watch.recovery_s.items()},
        "recovery_s": {kind: figures(found) for kind, found in watch.recovery_s.items()},
        "query_restarts": [{"cause": r.cause, "down_s": round(r.down_s, 2)} for r in restarts],
        "controller_starts": keeper.starts, "said": keeper.said + nodes.said,
        "rows": rows_of(verdict), "resident_mb": (memory := resident(watch.samples)), "history": history,
        "left_over": left,
    }  # fmt: skip
    return finish(result, bars_of(verdict, history, left, len(watch.recovery_s["controller"]), memory))


def strike_on(stage: Stage, counting: Counting, keeper: Keeper, watch: Watch) -> None:
    """Until the time is over; nothing is struck that would not have come back before the end."""
    chance = random.Random(SEED)
    bag: list[str] = []
    await_controller(counting, keeper)
    while True:
        calm_until_s = watch.at_s + CALM_S
        while watch.at_s < min(calm_until_s, SECONDS):
            counting.settle(lambda: True)
            watch.samples.append((watch.at_s, resident_now(stage.cluster.run, keeper)))
            time.sleep(SAMPLE_S)  # this is the load's time, not a wait for something
        if watch.at_s >= SECONDS:
            return
        bag = bag or chance.sample(KINDS, len(KINDS))
        kind = bag.pop()
        struck_s = time.monotonic()
        what = BLOWS[kind](stage, counting, keeper, chance)
        watch.recovery_s[kind].append(time.monotonic() - struck_s)
        say(f"{watch.at_s:6.0f} s: {what}; well again after {watch.recovery_s[kind][-1]:.1f} s")


def kill_an_executor(stage: Stage, counting: Counting, _: Keeper, chance: random.Random) -> str:
    """One that holds an instance."""
    run = stage.cluster.run
    counting.settle(lambda: bool(counting.executors()), FLOW_S)
    seats = set(counting.executors().values())
    found = [(node, executor) for node in run.settings.node_names() for executor in executors_of(run, node)]
    node, executor = chance.choice(sorted(f for f in found if f[1] in seats))
    return hit(counting, executor, lambda: kill_executor(run, node, executor), f"killed executor {executor} on {node}")


def kill_a_worker(stage: Stage, counting: Counting, _: Keeper, chance: random.Random) -> str:
    run = stage.cluster.run
    node = chance.choice([n.name for n in stage.cluster.status() if n.alive])
    executor = next(iter(executors_of(run, node)), "")
    what = hit(counting, executor, lambda: kill([run.leaders[node]]), f"killed the worker of {node}")
    counting.settle(lambda: next(n.alive for n in stage.cluster.status() if n.name == node), FLOW_S)
    return what


def kill_the_controller(_stage: Stage, counting: Counting, keeper: Keeper, _: random.Random) -> str:
    starts = keeper.starts
    keeper.process.kill()
    counting.settle(lambda: keeper.starts > starts, FLOW_S)
    await_controller(counting, keeper)
    return "killed the controller"


BLOWS: dict[str, Callable[[Stage, Counting, Keeper, random.Random], str]] = {
    "executor": kill_an_executor,
    "worker": kill_a_worker,
    "controller": kill_the_controller,
}


def hit(counting: Counting, executor: str, blow: Callable[[], object], what: str) -> str:
    """Strike, and wait until rows flow again: at once where the executor held no instance."""
    assert isinstance(counting.query, Supervised)
    before, sat = len(counting.query.restarts), executor in counting.executors().values()
    query = counting.query
    blow()
    if sat:  # unless a plan was just taking it elsewhere

        def over() -> bool:
            seats = counting.executors().values()
            return len(query.restarts) > before or (bool(seats) and executor not in seats)

        counting.settle(over, FLOW_S)
    counting.settle(lambda: bool(counting.executors()), FLOW_S)
    out = counting.output()
    counting.settle(lambda: counting.output() > out + RATE, FLOW_S)
    return what if sat else f"{what}, which held no instance"


def await_controller(counting: Counting, keeper: Keeper) -> None:
    """Until this life of it has done a cycle and waits for the next."""

    def waits() -> bool:
        sign = last_sign(keeper.beat, keeper.process.pid)
        return sign is not None and sign.doing == "waiting"

    counting.settle(waits, FLOW_S)


def resident_now(run: Run, keeper: Keeper) -> dict[str, float]:
    """MB by kind of process."""
    executors = {p.pid for node in run.settings.node_names() for p in executors_of(run, node).values()}
    found = {
        "driver_python": rss_mb(os.getpid()),
        "driver_java": sum(rss_mb(pid) for pid in children(os.getpid(), b"SparkSubmit")),
        "executors": sum(rss_mb(pid) for pid in executors),
        "daemons": sum(rss_mb(p.pid) for p in marked(run.run_id) if p.pid not in executors),
        "controller": rss_mb(keeper.process.pid),
    }
    return {**found, "all": sum(found.values())}


def rss_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return 0.0  # ended meanwhile


def children(parent: int, word: bytes) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                mine = int((folder / "stat").read_text().rsplit(") ", 1)[1].split()[1]) == parent
                if mine and word in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def resident(samples: list[tuple[float, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Early and late, by kind of process."""
    span_s, third_s = SECONDS / 10, SECONDS / 3
    found = {}
    for kind in samples[0][1]:
        early = [mb[kind] for at_s, mb in samples if third_s <= at_s < third_s + span_s]
        late = [mb[kind] for at_s, mb in samples if at_s >= SECONDS - span_s]
        if early and late:
            first, last = statistics.median(early), statistics.median(late)
            found[kind] = {"early": round(first), "late": round(last), "growth": round(last / max(first, 1e-9), 3)}
    return found


def read_history(folder: Path) -> dict[str, object]:
    kinds = [r["kind"] for r in rows(folder, ("kind",))]
    return {"entries": len(kinds), "gaps_marked": kinds.count("gap"), "holes": gaps(folder)}


def left_over(run: Run, keeper: Keeper) -> list[str]:
    """Whatever of the run is still there when it is over."""
    found = [f"process {p.pid}" for p in marked(run.run_id)]
    if identify(keeper.process.pid) is not None:
        found.append(f"controller {keeper.process.pid}")
    groups = [] if run.groups is None else [run.groups.path, accounts_of(run.groups)]
    return found + [f"group {path}" for path in groups if path is not None and path.exists()]


def rows_of(verdict: Verdict) -> dict[str, object]:
    names = ("due", "counted", "lost", "counted_twice", "checksum_ok")
    return {name: getattr(verdict, name) for name in names}


def bars_of(
    verdict: Verdict, history: dict[str, object], left: list[str], controllers: int, memory: dict[str, dict[str, float]]
) -> list[Bar]:
    holes, marked_gaps = history["holes"], history["gaps_marked"]
    assert isinstance(holes, list) and isinstance(marked_gaps, int)
    bars = [
        Bar("exact", float(verdict.exact), at_least=1.0),
        Bar("holes in the history", float(len(holes)), at_most=0.0),
        Bar("marked gaps for each controller killed", marked_gaps - controllers, at_least=0.0),
        Bar("left over", float(len(left)), at_most=0.0),
    ]
    if SECONDS >= WHOLE_S:
        kinds = ("all", "driver_python", "driver_java")
        bars += [Bar(f"growth of {kind}", memory[kind]["growth"], at_most=1.05) for kind in kinds]
    return bars


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
