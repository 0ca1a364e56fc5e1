"""A steered word count with repeated kill -9 of an executor, a node's worker or the controller. 30 minutes.

BENCH_SECONDS (1800) says how long, BENCH_SEED (7) in which order. Each kill comes 20 s after rows flow again. JSON:
``seconds``, ``seed``; ``kills``: by kind; ``recovery_s``: by kind, from the kill until rows flow again (a controller:
until it has done a cycle); ``query_restarts``: each with ``cause`` and ``down_s``; ``controller_starts``, ``said``
(by the keepers); ``rows``: ``due``, ``counted``, ``lost``, ``counted_twice``, ``checksum_ok``; ``resident_mb``: by
kind of process (``driver_python``, ``driver_java``, ``executors``, ``daemons``: master and workers, ``controller``) the
median sum in minutes 10 to 13 (``early``) and in the last three (``late``), in a shorter run in the same parts of it;
``growth``, and ``all`` together; executors are killed every few minutes, so theirs shows no long-term growth;
``history``: ``entries``, ``gaps_marked``, ``holes`` (not marked); ``left_over``: processes and control groups that
outlived the run.

Bars: every row counted once; no hole; a marked gap for each controller that was killed; nothing left over; resident
memory of all, and of the driver's two processes, at most 1.05 times as much (only in a run of at least 30 minutes:
before that, code is still being compiled). No node is released here: a released node would hide growth of the others.
"""

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from barograph.control.heartbeat import ControllerKeeper, last_heartbeat
from barograph.engines.spark.cluster.node_keeper import NodeKeeper
from barograph.engines.spark.cluster.node_limit import accounts_of
from barograph.engines.spark.cluster.node_status import executors_of, kill_executor
from barograph.engines.spark.cluster.processes import identify, kill, marked
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.experiments.running.warm_up import warm_up
from barograph.experiments.steering.steering import Steering
from barograph.experiments.verdict import Verdict
from barograph.history.read import gaps, rows
from barograph.testing.local_cluster import PARALLELISM, LocalCluster, RunningQuery, open_local_cluster
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._figures import Bar, figures, finish, say
from bench._processes import parent_of, resident_mb

SECONDS = float(os.environ.get("BENCH_SECONDS", "1800"))
SEED = int(os.environ.get("BENCH_SEED", "7"))
WHOLE_S = 1800.0
KINDS = ("executor", "worker", "controller")
CALM_S = 20.0
SAMPLE_S = 5.0
FLOW_S = 180.0  # limit for the restart of a node and then of the query
RATE = 300
EPOCH_S = 20.0


@dataclass
class Watch:
    """Measurements during the run. samples: (seconds since the start, kind of process -> MB)."""

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
        steering = Steering("adaptive", history=folder / "history", release_after_s=None)
        with open_local_cluster(ClusterSettings(3, 0.6, 8)) as stage:
            run = stage.cluster.run
            nodes = NodeKeeper(stage.cluster)
            try:
                warm_up(stage.spark, WORDCOUNT, PARALLELISM, say)
                with stage.query("soak", rate=RATE, epoch_s=EPOCH_S, supervised=True) as counting:
                    stage.cluster.fence()
                    with steering.start(stage.supervisor.serve().path, folder) as keeper:
                        watch.began_s = time.monotonic()
                        kill_repeatedly(stage, counting, keeper, watch)
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
        "controller_starts": keeper.starts, "said": keeper.said + nodes.problems,
        "rows": rows_of(verdict), "resident_mb": (memory := resident(watch.samples)), "history": history,
        "left_over": left,
    }  # fmt: skip
    return finish(result, bars_of(verdict, history, left, len(watch.recovery_s["controller"]), memory))


def kill_repeatedly(stage: LocalCluster, counting: RunningQuery, keeper: ControllerKeeper, watch: Watch) -> None:
    """Kill one kind after another in random order until the time is over, with CALM_S between them."""
    chance = random.Random(SEED)
    bag: list[str] = []
    await_controller(counting, keeper)
    while True:
        calm_until_s = watch.at_s + CALM_S
        while watch.at_s < min(calm_until_s, SECONDS):
            counting.settle(lambda: True)
            watch.samples.append((watch.at_s, resident_now(stage.cluster.run, keeper)))
            time.sleep(SAMPLE_S)  # the interval between samples, not a wait for a condition
        if watch.at_s >= SECONDS:
            return
        bag = bag or chance.sample(KINDS, len(KINDS))
        kind = bag.pop()
        killed_s = time.monotonic()
        what = KILLS[kind](stage, counting, keeper, chance)
        watch.recovery_s[kind].append(time.monotonic() - killed_s)
        say(f"{watch.at_s:6.0f} s: {what}; recovered after {watch.recovery_s[kind][-1]:.1f} s")


def kill_an_executor(stage: LocalCluster, counting: RunningQuery, _: ControllerKeeper, chance: random.Random) -> str:
    """An executor that runs an instance."""
    run = stage.cluster.run
    counting.settle(lambda: bool(counting.executors()), FLOW_S)
    seats = set(counting.executors().values())
    found = [(node, executor) for node in run.settings.node_names() for executor in executors_of(run, node)]
    node, executor = chance.choice(sorted(f for f in found if f[1] in seats))
    return killed(
        counting, executor, lambda: kill_executor(run, node, executor), f"killed executor {executor} on {node}"
    )


def kill_a_worker(stage: LocalCluster, counting: RunningQuery, _: ControllerKeeper, chance: random.Random) -> str:
    run = stage.cluster.run
    node = chance.choice([n.name for n in stage.cluster.status() if n.alive])
    executor = next(iter(executors_of(run, node)), "")
    what = killed(counting, executor, lambda: kill([run.leaders[node]]), f"killed the worker of {node}")
    counting.settle(lambda: next(n.alive for n in stage.cluster.status() if n.name == node), FLOW_S)
    return what


def kill_the_controller(
    _stage: LocalCluster, counting: RunningQuery, keeper: ControllerKeeper, _: random.Random
) -> str:
    starts = keeper.starts
    keeper.process.kill()
    counting.settle(lambda: keeper.starts > starts, FLOW_S)
    await_controller(counting, keeper)
    return "killed the controller"


KILLS: dict[str, Callable[[LocalCluster, RunningQuery, ControllerKeeper, random.Random], str]] = {
    "executor": kill_an_executor,
    "worker": kill_a_worker,
    "controller": kill_the_controller,
}


def killed(counting: RunningQuery, executor: str, kill_it: Callable[[], object], what: str) -> str:
    """Kill, and wait until rows flow again: at once if the executor held no instance."""
    assert isinstance(counting.query, Supervised)
    before, sat = len(counting.query.restarts), executor in counting.executors().values()
    query = counting.query
    kill_it()
    if sat:  # the query restarts, unless a plan was just moving its instances

        def over() -> bool:
            seats = counting.executors().values()
            return len(query.restarts) > before or (bool(seats) and executor not in seats)

        counting.settle(over, FLOW_S)
    counting.settle(lambda: bool(counting.executors()), FLOW_S)
    out = counting.output()
    counting.settle(lambda: counting.output() > out + RATE, FLOW_S)
    return what if sat else f"{what}, which held no instance"


def await_controller(counting: RunningQuery, keeper: ControllerKeeper) -> None:
    """Wait until the present controller process has done a cycle and waits for the next."""

    def waits() -> bool:
        heartbeat = last_heartbeat(keeper.heartbeat, keeper.process.pid)
        return heartbeat is not None and heartbeat.doing == "waiting"

    counting.settle(waits, FLOW_S)


def resident_now(run: Run, keeper: ControllerKeeper) -> dict[str, float]:
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
        return resident_mb(pid)
    except OSError:
        return 0.0  # ended meanwhile


def children(parent: int, word: bytes) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                if parent_of(int(folder.name)) == parent and word in (folder / "cmdline").read_bytes():
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


def left_over(run: Run, keeper: ControllerKeeper) -> list[str]:
    """Processes and control groups of the run that still exist after its end."""
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
