"""N-Storm's evaluation in the simulator: the cost of each way to move M instances every 60 s in a run of 600 s.

Ours are the six modes with orders that are pushed; the paper's are its four systems, whose workers ask for orders
every 10 and 3 s, and N-Storm+ with other cycles. JSON on stdout; on stderr, by M: seconds at least 60 % below stable
output and seconds without output, and total throughput (rows completed, in millions). Fails when rows are lost or
repeated. About one minute; two processes, or BENCH_PROCESSES.
"""

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass

from barograph.control.policy_in_sim import NO_POLICY, rehearse
from barograph.engines.sim import find, read_calibration
from barograph.model import MigrationMode
from bench._figures import say

PROCESSES = int(os.environ.get("BENCH_PROCESSES", "2"))
MOVED = (1, 2, 4, 8, 16)
SYSTEMS = ("storm", "storm-star", "n-storm", "n-storm-plus")
CYCLES = ("1-0.3", "0.3-0.1", "pushed")


@dataclass(frozen=True, slots=True)
class Moved:
    """One run. moved: M."""

    way: str
    moved: int
    degraded_s: Mapping[int, int]
    stopped_s: float
    completed_rows: float
    replayed_rows: float
    lost_rows: float


def main() -> int:
    names = [f"{way}-m{m}" for way in (*MigrationMode, *SYSTEMS) for m in MOVED]
    names += [f"n-storm-plus-m16-{cycles}" for cycles in CYCLES]
    with ProcessPoolExecutor(PROCESSES) as pool:
        found = list(pool.map(_run, names, chunksize=2))
    calibrated = "calibrated" if read_calibration().calibrated else "uncalibrated"
    say(f"Moving M instances each 60 s in the simulator ({calibrated}): of 600 s, seconds at least 60 % below stable /")
    say("without output, then rows completed in millions, by M")
    _table("ours, orders pushed", found, tuple(MigrationMode))
    _table("the paper's systems, cycles of 10 and 3 s", found, SYSTEMS)
    say("  N-Storm+ at M = 16 by its cycles")
    for run in found:
        if run.way.startswith("n-storm-plus-m16"):
            cycles = run.way.removeprefix("n-storm-plus-m16-").replace("-", " and ")
            say(f"    {cycles:<16} {_cell(run)} {run.completed_rows / 1e6:>7.2f}")
    wrong = [f"{r.way}-m{r.moved}" for r in found if r.lost_rows or r.replayed_rows]
    print(json.dumps({"runs": [asdict(r) for r in found], "lost_or_repeated": wrong}, indent=1))
    return 1 if wrong else 0


def _run(name: str) -> Moved:
    result = rehearse(find(f"migration/{name}"), NO_POLICY, grain="flows")
    (topology,) = result.topologies
    way, _, moved = name.rpartition("-m")
    whole = moved.isdecimal()  # the rest are N-Storm+ of 16 instances, by its cycles
    return Moved(
        way if whole else name,
        int(moved) if whole else 16,
        topology.degraded_s or {},
        topology.stopped_s,
        result.completed_rows,
        result.replayed_rows,
        result.lost_rows,
    )


def _table(title: str, found: Sequence[Moved], ways: Sequence[str]) -> None:
    say(f"\n  {title:<42}" + "".join(f"{m:>9}" for m in MOVED))
    for way in ways:
        runs = sorted((r for r in found if r.way == way), key=lambda r: r.moved)
        say(f"    {way:<40}" + "".join(f"{_cell(r):>9}" for r in runs))
        say(f"    {'':<40}" + "".join(f"{r.completed_rows / 1e6:>9.2f}" for r in runs))


def _cell(run: Moved) -> str:
    return f"{run.degraded_s[60]}/{run.degraded_s[100]}"
