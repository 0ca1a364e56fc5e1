"""CPU limits: what an instance gets of what was ordered, what asking costs for each row, and how long a JVM stops.

One node without a fence, one instance of split whose rows cost 200 us, so that it could use a whole core. For each way,
limits of 5, 20, 60 and 100 % are ordered one after the other; the CPU of its thread is read from the kernel every
second for ten seconds; and it is ordered ten times to another limit: its executor notes when its thread, or its group,
first goes by that. Then eight instances have 5 % each, under overload, and garbage is collected twice a second: the
JVM's own log says how long its threads took to stop for that; and once more without limits, to compare. The cost of
asking before a row is measured in the executor, with a limit in force, and compared with the CPU of the cheapest row of
the word count at full rate; a row is asked for twice, when it comes in and when it goes out.

Two cases more, by the default way, each about a minute. *Short epochs*: limits of 5 and 20 % over four epochs of 5 s,
by the instance's metrics, because each epoch has another thread. *A pool*: a node with half a core and eight instances
under overload, some within their shares and some above, whose only limit is the node's quota.

JSON: ``used_pct`` by way and limit: ``ten_s``, and ``one_s`` as a list; ``idle_pct``: what the machine had left
meanwhile, because an instance cannot use what others take; ``stop_ms`` by way: the longest time until all threads of
the JVM stood; ``bites_ms`` by way: from each order until it held; ``ask_ns``; ``row_ns``; ``short_epochs``: by limit,
what was used and how many epochs began; ``pool``: ``work_part`` of the instances' CPU, and of each its share, what it
used and waited, and how often a second its thread gave its processor up (voluntary context switches). Bars, by the
default way: within 10 % or one point over 10 s, within 25 % or one point over each second, at most 200 ms until an
order holds, at most 1 % for asking; at short epochs 10 % or one point, and above the limit also the free 50 ms of each
epoch; at least 80 % of the pool's CPU is work, and no instance within its share waits for the pool (at most 1 % of the
time). About six minutes; BENCH_SECONDS (10) is the time for each limit. Needs the machine for itself.
"""

import itertools
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from barograph.engines.spark.cluster.embedded import start_cluster
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.session import await_executors, open_session
from barograph.experiments.running.warm_up import warm_up
from barograph.model import Instance, Plan
from barograph.testing.local_cluster import PARALLELISM, LocalCluster, OpenSession, RunningQuery, with_testing_jar
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._busy_split import ONE, SETTLE_S, busy, wait
from bench._figures import Bar, finish, say
from bench._pool import in_a_pool, pool_bars, pool_json
from bench._short_epochs import EPOCH_S, EpochsUse, at_short_epochs

WAYS = ("cooperative", "cgroup")
DEFAULT = WAYS[0]  # what auto takes
NONE = "off"
LIMITS_PCT = (5.0, 20.0, 60.0, 100.0)
SECONDS = int(os.environ.get("BENCH_SECONDS", "10"))
MANY = {"source": 1, "split": 4, "count": 4}
ASKS_PER_ROW = 2
COLLECTIONS, EVERY_S = 40, 0.5
STOP = re.compile(r"Reaching safepoint: (\d+) ns")
ORDERS, BITES_MS = 10, 200


@dataclass(frozen=True)
class Use:
    """ten_s: over the whole time; one_s: of each second; idle_pct: what nothing on the machine used meanwhile."""

    ten_s: float
    one_s: list[float]
    idle_pct: float

    def off(self, wanted_pct: float) -> tuple[float, float]:
        """How far it is off, as parts of what is allowed: over the whole time, and in the worst second."""
        whole, second = max(0.1 * wanted_pct, 1.0), max(0.25 * wanted_pct, 1.0)
        return abs(self.ten_s - wanted_pct) / whole, max(abs(pct - wanted_pct) for pct in self.one_s) / second


def main() -> int:
    used: dict[str, dict[float, Use]] = {way: {} for way in WAYS}
    stop_ms: dict[str, float] = {}
    bites_ms: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "safepoints") as (stage, log):
        warm_up(stage.spark, WORDCOUNT, PARALLELISM)
        for way in WAYS:
            stage.engine.enforce(way)
            for limit_pct, use in accuracy(stage, way):
                used[way][limit_pct] = use
                say(f"{way}, {limit_pct:g} %: used {use.ten_s:.1f} % (idle {use.idle_pct:.0f} %), {use.one_s}")
            bites_ms[way] = bites(stage, way)
            say(f"{way}: an order holds after {bites_ms[way]} ms")
        for way in (*WAYS, NONE):
            stage.engine.enforce(way)
            stop_ms[way] = longest_stop_ms(stage, way, log)
            say(f"{way}: longest time until all threads of the JVM stood {stop_ms[way]:.1f} ms")
        stage.engine.enforce("auto")
        row_ns = cheapest_row_ns(stage)
        (asked,) = stage.spark.sql(
            "select reflect('org.apache.spark.barograph.testing.AskCost', 'picoseconds') as ps"
        ).collect()
        ask_ns = int(asked["ps"]) / 1000
        short = dict[float, EpochsUse]()
        for limit_pct, over in at_short_epochs(stage):
            short[limit_pct] = over
            say(f"epochs of {EPOCH_S:g} s, {limit_pct:g} %: used {over.used_pct:.1f} % over {over.epochs} of them")
    pool = in_a_pool()
    part = 100 * ASKS_PER_ROW * ask_ns / row_ns
    result = {
        "used_pct": {
            way: {f"{pct:g}": {"ten_s": u.ten_s, "one_s": u.one_s, "idle_pct": u.idle_pct} for pct, u in found.items()}
            for way, found in used.items()
        },
        "short_epochs": {f"{pct:g}": asdict(over) for pct, over in short.items()},
        "pool": pool_json(pool),
        "bites_ms": bites_ms,
        "stop_ms": stop_ms,
        "ask_ns": ask_ns,
        "row_ns": round(row_ns),
    }
    bars = [
        Bar("asking, per cent of a row's CPU", part, at_most=1.0),
        Bar("ms until an order holds, the longest", max(bites_ms[DEFAULT]), at_most=BITES_MS),
    ]
    for limit_pct, use in used[DEFAULT].items():
        whole, second = use.off(limit_pct)
        bars.append(Bar(f"{limit_pct:g} % over {SECONDS} s, parts of what it may be off", whole, at_most=1.0))
        bars.append(Bar(f"{limit_pct:g} % over each second, parts of what it may be off", second, at_most=1.0))
    for limit_pct, over in short.items():
        what = f"{limit_pct:g} % at epochs of {EPOCH_S:g} s, parts of what it may be off"
        bars.append(Bar(what, over.off(limit_pct), at_most=1.0))
    return finish(result, [*bars, *pool_bars(list(pool.values()))])


@contextmanager
def opened(log: Path) -> Iterator[tuple[LocalCluster, Path]]:
    """A cluster of one node whose executor logs its safepoints into a file."""
    settings = ClusterSettings(nodes=1, seats=16)
    with start_cluster(settings) as cluster:
        conf = cluster.session_conf()
        options = f"{conf['spark.executor.extraJavaOptions']} -Xlog:safepoint=info:file={log}:none:filecount=0"
        conf["spark.executor.extraJavaOptions"] = options
        spark = open_session("barograph bench", with_testing_jar(), conf)
        try:
            await_executors(spark, 1)
            with OpenSession(cluster, spark).steerable() as stage:
                yield stage, log
        finally:
            spark.stop()


def accuracy(stage: LocalCluster, way: str) -> Iterator[tuple[float, Use]]:
    """Of one instance that wants a whole core."""
    name = f"busy-{way}"
    with stage.query(name, 20_000, ONE, epoch_s=600.0, workload=busy()) as counting:
        split = Instance(name, "split", 0)
        wait(counting, SETTLE_S)
        for limit_pct in LIMITS_PCT:
            outcome = stage.engine.apply(Plan(limits_pct={split: limit_pct}))
            assert outcome.ok and not outcome.left_out, outcome
            wait(counting, SETTLE_S)
            yield limit_pct, measured(counting, split)


def bites(stage: LocalCluster, way: str) -> list[int]:
    """Milliseconds from each order until the instance goes by it."""
    name, found = f"ordered-{way}", list[int]()
    with stage.query(name, 20_000, ONE, epoch_s=600.0, workload=busy()) as counting:
        split = Instance(name, "split", 0)
        wait(counting, SETTLE_S)
        for turn in range(ORDERS):
            ordered_ms = int(time.time() * 1000)
            assert stage.engine.apply(Plan(limits_pct={split: 20.0 + turn})).ok
            counting.settle(lambda since=ordered_ms: held_ms(stage, split) >= since)  # type: ignore[misc]
            found.append(held_ms(stage, split) - ordered_ms)
    return found


def held_ms(stage: LocalCluster, instance: Instance) -> int:
    """When the present limit of an instance first held, by its executor's clock, which is this machine's."""
    return int(stage.engine.held_since_ms().get(instance, 0))


def measured(counting: RunningQuery, instance: Instance) -> Use:
    epoch = counting.cluster.engine.present(counting.name)
    assert epoch is not None
    life = epoch.lives[instance]
    clock = Path(f"/proc/{life.pid}/task/{life.tid}/schedstat")
    idle_from, marks = idle_s(), [(time.monotonic(), cpu_s(clock))]
    for second in range(1, SECONDS + 1):
        time.sleep(max(0.0, marks[0][0] + second - time.monotonic()))
        marks.append((time.monotonic(), cpu_s(clock)))
    one_s = [round(100 * (b[1] - a[1]) / (b[0] - a[0]), 2) for a, b in itertools.pairwise(marks)]
    took_s = marks[-1][0] - marks[0][0]
    ten_s = round(100 * (marks[-1][1] - marks[0][1]) / took_s, 2)
    return Use(ten_s, one_s, round(100 * (idle_s() - idle_from) / took_s, 1))


def cpu_s(schedstat: Path) -> float:
    return int(schedstat.read_text().split()[0]) / 1e9


def idle_s() -> float:
    """Time in which processors of this machine had nothing to do, all together."""
    return int(Path("/proc/stat").read_text().split()[4]) / os.sysconf("SC_CLK_TCK")


def longest_stop_ms(stage: LocalCluster, way: str, log: Path) -> float:
    """While instances are held to 5 % under overload; without limits they share the machine."""
    name = f"many-{way}"
    with stage.query(name, 1_000_000, MANY, epoch_s=600.0) as counting:
        topology = stage.engine.observe().topology(name)
        limits = {i: 5.0 for i in topology.instances() if i.operator != "source"}
        assert stage.engine.apply(Plan(limits_pct=limits)).ok
        wait(counting, SETTLE_S)
        begun = log.stat().st_size
        for _ in range(COLLECTIONS):
            stage.spark.sql("select reflect('java.lang.System', 'gc')").collect()
            wait(counting, EVERY_S)
        with log.open() as file:
            file.seek(begun)
            return max(int(ns) for ns in STOP.findall(file.read())) / 1e6


def cheapest_row_ns(stage: LocalCluster) -> float:
    """CPU of a row of the instance that executes most, at full rate."""
    with stage.query("full-rate", 1_000_000, ONE, epoch_s=600.0) as counting:
        wait(counting, 10.0)
        stage.engine.observe()
        wait(counting, 10.0)
        metrics = stage.engine.observe().metrics
        rows = [metrics.row(i) for i in metrics.instances if i.operator != "source"]
        return min(1e9 * row.cpu_s / row.executed for row in rows)


if __name__ == "__main__":
    sys.exit(main())
