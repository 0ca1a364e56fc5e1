"""A kept, steered word count while everything is killed: A (40 minutes) also the driver, B (50) all but the driver.

BENCH_PART (A, B or both, the default), BENCH_SECONDS (how long, instead of each part's own time), BENCH_SEED (7: the
order). The driver runs under ``barograph keep``. A fault comes 15 s after rows flow again, in random order:

- ``executor``, ``worker``, ``master``, ``controller``, in A also ``driver``: kill -9;
- in A also ``stopped``: an executor gets SIGSTOP for 5 to 40 s; ``disk``: the checkpoint's disk, a small tmpfs, is full
  for 20 s.

JSON, for each part: ``seconds``, ``seed``; ``recovery_s``: by kind, median and worst, from the fault until rows flow
again (a controller: until it has done a cycle; a worker, a master: until it is also back; a disk: from when there is
room again); ``rows``: ``due``, ``counted``, ``lost``, ``counted_twice``, ``checksum_ok``; ``memory_mb``: of the
driver's Python, its JVM and the JVM's heap after a collection, in minutes 15 to 18 of 50 (``early``), in the last three
(``late``), ``growth``; ``history``: ``entries``, ``gaps_marked``, ``holes`` (not marked); ``left_over``: processes and
control groups that outlived the run; ``said``: what could not be restarted.

Bars: every row counted once; executor: 2 s median, 5 s worst; worker, master, stopped: 30 s worst; no hole in the
history; nothing left over; in B, if it takes its whole time, growth at most 1.05.
"""

import os
import random
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from barograph.experiments.verdict import Verdict
from barograph.history.read import gaps, rows
from bench._figures import Bar, figures, finish, say
from bench._soak.faults import FAULTS
from bench._soak.memory import growth, sample
from bench._soak.world import World, left_over, open_world

PARTS = {"A": 2400.0, "B": 3000.0}
KINDS = {"A": tuple(FAULTS), "B": ("executor", "worker", "master", "controller")}
SEED = int(os.environ.get("BENCH_SEED", "7"))
CALM_S = 15.0
SAMPLE_S = 5.0
WORST_S = {"executor": 5.0, "worker": 30.0, "master": 30.0, "stopped": 30.0}
MEDIAN_S = {"executor": 2.0}
MOST_GROWTH = 1.05


def main() -> int:
    chosen = os.environ.get("BENCH_PART", "both")
    parts = [part for part in PARTS if chosen in (part, "both")]
    result: dict[str, object] = {}
    bars: list[Bar] = []
    for part in parts:
        seconds = float(os.environ.get("BENCH_SECONDS", PARTS[part]))
        say(f"part {part}: {seconds:.0f} s")
        result[part], of_part = run_part(part, seconds)
        bars += of_part
    return finish(result, bars)


def run_part(part: str, seconds: float) -> tuple[dict[str, object], list[Bar]]:
    recovery_s: dict[str, list[float]] = {kind: [] for kind in KINDS[part]}
    with tempfile.TemporaryDirectory(prefix="barograph-soak-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        samples: list[tuple[float, dict[str, float]]] = []
        try:
            with open_world(folder, collect=part == "B") as world:
                torment(world, seconds, recovery_s, samples)
                deaths = world.flow().deaths
                verdict = world.finish()
                run, seen, said = world.cluster.run, world.seen, list(world.nodes.problems)
        except BaseException:
            say((folder / "driver.log").read_text(errors="replace")[-8000:])
            raise
        left = left_over(run, seen)
        kinds = [r["kind"] for r in rows(folder / "history", ("kind",))]
        holes = gaps(folder / "history")
    memory = growth(samples, seconds)
    result: dict[str, object] = {
        "seconds": seconds, "seed": SEED,
        "recovery_s": {kind: figures(found) for kind, found in recovery_s.items()},
        "rows": asdict(verdict), "memory_mb": memory,
        "history": {"entries": len(kinds), "gaps_marked": kinds.count("gap"), "holes": holes},
        "left_over": left, "said": said,
        "deaths_under_last_driver": [{"cause": cause, "down_s": down_s} for cause, down_s in deaths],
    }  # fmt: skip
    judged = memory if part == "B" and seconds >= PARTS["B"] else {}
    return result, bars_of(part, recovery_s, verdict, len(holes), len(left), judged)


def torment(
    world: World, seconds: float, recovery_s: dict[str, list[float]], samples: list[tuple[float, dict[str, float]]]
) -> None:
    """One fault after the other until the time is over, each kind once before one comes again."""
    chance, bag = random.Random(SEED), list[str]()
    began_s = time.monotonic()
    while True:
        calm_until_s = time.monotonic() + CALM_S
        while (now_s := time.monotonic()) < min(calm_until_s, began_s + seconds):
            samples.append((now_s - began_s, sample(world.flow())))
            time.sleep(min(SAMPLE_S, calm_until_s - now_s))  # the interval between samples, not a wait
        if time.monotonic() - began_s >= seconds:
            return
        bag = bag or chance.sample(list(recovery_s), len(recovery_s))
        kind = bag.pop()
        took_s, what = FAULTS[kind](world, chance)
        recovery_s[kind].append(took_s)
        say(f"{time.monotonic() - began_s:6.0f} s: {what}; recovered after {took_s:.1f} s")
        world.wait(lambda flow: flow.flowing_since_s is not None, "rows")


def bars_of(
    part: str, recovery_s: dict[str, list[float]], verdict: Verdict, holes: int, left: int,
    memory: dict[str, dict[str, float]],
) -> list[Bar]:  # fmt: skip
    bars = [Bar(f"{part}: exact", float(verdict.exact), at_least=1.0)]
    for kind, found in recovery_s.items():
        known = figures(found)
        if kind in WORST_S and found:
            bars.append(Bar(f"{part}: worst {kind}", known["worst"], at_most=WORST_S[kind]))
        if kind in MEDIAN_S and found:
            bars.append(Bar(f"{part}: median {kind}", known["median"], at_most=MEDIAN_S[kind]))
    bars.append(Bar(f"{part}: holes in the history", float(holes), at_most=0.0))
    bars.append(Bar(f"{part}: left over", float(left), at_most=0.0))
    return bars + [Bar(f"{part}: growth of {k}", of["growth"], at_most=MOST_GROWTH) for k, of in memory.items()]
