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
control groups that outlived the run; ``said``: what could not be restarted; ``problems``: what ended the part before
its time, such as rows that did not flow again within three minutes of a fault; what was found until then is reported.

Bars: no problem; every row counted once; executor: 2 s median, 5 s worst; worker, master, stopped and disk: 30 s worst
(a driver and a controller, which other programs may have to start again, are reported only); no hole
in the history; nothing left over. Of a part that takes its whole time also: each kind of fault came; in B growth of
each of the three at most 1.05.
"""

import os
import random
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from barograph.experiments.verdict import Verdict
from barograph.history.read import gaps, rows
from bench._figures import Bar, figures, finish, say
from bench._soak.faults import FAULTS
from bench._soak.memory import MEASURED, growth, java_of, sample
from bench._soak.world import World, left_over, open_world

PARTS = {"A": 2400.0, "B": 3000.0}
KINDS = {"A": tuple(FAULTS), "B": ("executor", "worker", "master", "controller")}
SEED = int(os.environ.get("BENCH_SEED", "7"))
CALM_S = 15.0
SAMPLE_S = 5.0
WORST_S = {"executor": 5.0, "worker": 30.0, "master": 30.0, "stopped": 30.0, "disk": 30.0}
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


@dataclass
class Found:
    """Of one part, as far as it came. problems: what ended it before its time, or left it without a verdict."""

    recovery_s: dict[str, list[float]]
    samples: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    verdict: Verdict | None = None
    deaths: tuple[tuple[str, float], ...] = ()
    said: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    holes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @contextmanager
    def noting(self, what: str, log: Path) -> Iterator[None]:
        """An error is a problem of this part, and what was found so far is reported all the same."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # whatever it is, hours of measurements must not be lost with it
            notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
            self.problems.append(f"{what}{notes}: {type(error).__name__}: {error}")
            say(traceback.format_exc())
            if log.exists():
                say(log.read_text(errors="replace")[-8000:])


def run_part(part: str, seconds: float) -> tuple[dict[str, object], list[Bar]]:
    found = Found({kind: [] for kind in KINDS[part]})
    with tempfile.TemporaryDirectory(prefix="barograph-soak-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        log = folder / "driver.log"
        with found.noting("the cluster and the driver", log):
            with open_world(folder, collect=part == "B") as world:
                with found.noting("the faults", log):
                    torment(world, seconds, found.recovery_s, found.samples)
                with found.noting("the verdict", log):
                    found.deaths = world.flow().deaths
                    found.verdict = world.finish()
                run, seen, found.said = world.cluster.run, world.seen, list(world.nodes.problems)
            found.left = left_over(run, seen)
        with found.noting("the history", log):
            found.entries = [str(r["kind"]) for r in rows(folder / "history", ("kind",))]
            found.holes = [str(hole) for hole in gaps(folder / "history")]
    memory = growth(found.samples, seconds)
    result: dict[str, object] = {
        "seconds": seconds, "seed": SEED, "problems": found.problems,
        "recovery_s": {kind: figures(took_s) for kind, took_s in found.recovery_s.items()},
        "rows": None if found.verdict is None else asdict(found.verdict), "memory_mb": memory,
        "history": {"entries": len(found.entries), "gaps_marked": found.entries.count("gap"), "holes": found.holes},
        "left_over": found.left, "said": found.said,
        "deaths_under_last_driver": [{"cause": cause, "down_s": down_s} for cause, down_s in found.deaths],
    }  # fmt: skip
    is_whole = seconds >= PARTS[part]
    return result, bars_of(part, found, memory if part == "B" and is_whole else None, is_whole)


def torment(
    world: World, seconds: float, recovery_s: dict[str, list[float]], samples: list[tuple[float, dict[str, float]]]
) -> None:
    """One fault after the other until the time is over, each kind once before one comes again."""
    chance, bag = random.Random(SEED), list[str]()
    began_s = time.monotonic()
    while True:
        calm_until_s = time.monotonic() + CALM_S
        while (now_s := time.monotonic()) < min(calm_until_s, began_s + seconds):
            flow = world.flow()
            samples.append((now_s - began_s, sample(flow)))
            world.seen |= set(java_of(flow))
            time.sleep(min(SAMPLE_S, calm_until_s - now_s))  # the interval between samples, not a wait
        if time.monotonic() - began_s >= seconds:
            return
        bag = bag or chance.sample(list(recovery_s), len(recovery_s))
        kind = bag.pop()
        try:
            took_s, what = FAULTS[kind](world, chance)
        except Exception as error:
            error.add_note(f"during the fault {kind}")
            raise
        recovery_s[kind].append(took_s)
        say(f"{time.monotonic() - began_s:6.0f} s: {what}; recovered after {took_s:.1f} s")
        world.wait(lambda flow: flow.flowing_since_s is not None, "rows")


def bars_of(part: str, found: Found, memory: dict[str, dict[str, float]] | None, is_whole: bool = False) -> list[Bar]:
    """memory: None where it is not judged. is_whole: each kind of fault must have come."""
    bars = [
        Bar(f"{part}: problems", float(len(found.problems)), at_most=0.0),
        Bar(f"{part}: exact", float(found.verdict is not None and found.verdict.exact), at_least=1.0),
    ]
    for kind, took_s in found.recovery_s.items():
        known = figures(took_s)
        if kind in WORST_S and took_s:
            bars.append(Bar(f"{part}: worst {kind}", known["worst"], at_most=WORST_S[kind]))
        if kind in MEDIAN_S and took_s:
            bars.append(Bar(f"{part}: median {kind}", known["median"], at_most=MEDIAN_S[kind]))
    bars.append(Bar(f"{part}: holes in the history", float(len(found.holes)), at_most=0.0))
    bars.append(Bar(f"{part}: left over", float(len(found.left)), at_most=0.0))
    if is_whole:
        bars += [Bar(f"{part}: faults {k}", float(len(s)), at_least=1.0) for k, s in found.recovery_s.items()]
    if memory is not None:  # what could not be measured did not stay within its bar
        bars.append(Bar(f"{part}: kinds of memory measured", float(len(memory)), at_least=float(len(MEASURED))))
        bars += [Bar(f"{part}: growth of {k}", of["growth"], at_most=MOST_GROWTH) for k, of in memory.items()]
    return bars
