"""Hostile inputs: each gives a valid value or one sentence, within a second and 200 MB; never a traceback or a hang.

Inputs are made from seeds: configurations, loads, recorded clusters, scenarios, plans, messages to a driver's endpoint
and files of a history. BAROGRAPH_HOSTILE sets how many in all (1,000,000). Each kind gets at least a tenth of them and
runs in processes of its own. A failure is printed with its kind and seed; ``python -m bench.hostile KIND SEED`` runs
that one again. Bars: no failure; no input above 1 s; no process above 200 MB more than it began with.
"""

import json
import logging
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from barograph.model import BadInput
from bench._hostile_readers import readers

KINDS = ("configuration", "load", "recorded cluster", "scenario", "plan", "endpoint message", "history file")
CHEAP = ("load", "plan", "endpoint message")  # these get what is left over
COUNT = 1_000_000
LONGEST_S, HANG_S = 1.0, 10.0
MOST_MB = 200.0
MOST_SHOWN = 5
SHARDS = 8  # of a kind, so that a process that dies loses little


@dataclass
class Tally:
    """Of one shard. failures: seed and what happened."""

    kind: str
    first: int
    count: int
    valid: int = 0
    refused: int = 0
    longest_s: float = 0.0
    longest_seed: int = -1
    grown_mb: float = 0.0
    failures: list[tuple[int, str]] = field(default_factory=list)


def shares(count: int) -> dict[str, int]:
    tenth = count // 10
    left = (count - len(KINDS) * tenth) // len(CHEAP)
    return {kind: tenth + (left if kind in CHEAP else 0) for kind in KINDS}


def attempt(kind: str, first: int, count: int) -> Tally:
    """Seeds first to first + count - 1 of a kind."""
    package = logging.getLogger("barograph")
    tally = Tally(kind, first, count)
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with ExitStack() as stack:
        stack.callback(package.setLevel, package.level)
        package.setLevel(logging.ERROR)  # what is left out is warned of
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hostile-", dir=place)))
        make, take = readers(folder, stack)[kind]
        stack.callback(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, _hangs))
        before = _resident_mb()
        for seed in range(first, first + count):
            content = make(random.Random(f"{kind} {seed}"))
            took_s = _try(take, content, seed, tally)
            if took_s > LONGEST_S:  # other work on the machine can only add to it
                took_s = min(took_s, _try(take, content, seed, Tally(kind, seed, 1)))
            if took_s > tally.longest_s:
                tally.longest_s, tally.longest_seed = took_s, seed
        tally.grown_mb = _resident_mb() - before
    return tally


def _try(take: Callable[[bytes], object], content: bytes, seed: int, tally: Tally) -> float:
    """Returns how long it took."""
    began = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, HANG_S)
    try:
        take(content)
        tally.valid += 1
    except BadInput as error:
        tally.refused += 1
        if "\n" in str(error) or not str(error):
            tally.failures.append((seed, f"not one sentence: {str(error)[:200]!r}"))
    except Exception:  # noqa: BLE001  # this is what is looked for
        tally.failures.append((seed, traceback.format_exc(limit=-3)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return time.perf_counter() - began


def _hangs(*_: object) -> None:
    raise TimeoutError(f"it took longer than {HANG_S:g} s")


def _resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _shard(arguments: tuple[str, int, int]) -> Tally:
    return attempt(*arguments)


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] in KINDS:
        print(attempt(sys.argv[1], int(sys.argv[2]), 1))
        return 0
    wanted = shares(int(os.environ.get("BAROGRAPH_HOSTILE", COUNT)))
    work = []
    for kind, count in wanted.items():
        size = -(-count // SHARDS)
        work += [(kind, first, min(size, count - first)) for first in range(0, count, size)]
    found: list[Tally] = []
    # A process for each shard: memory is measured from its start, and a crash is noticed by the pool.
    with multiprocessing.get_context("spawn").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        for tally in pool.imap_unordered(_shard, work):
            found.append(tally)
            for seed, what in tally.failures[:MOST_SHOWN]:
                print(f"{tally.kind} {seed}: {what}", file=sys.stderr)
    report = {}
    for kind in KINDS:
        mine = [t for t in found if t.kind == kind]
        slowest = max(mine, key=lambda t: t.longest_s)
        report[kind] = {
            "inputs": sum(t.count for t in mine),
            "valid": sum(t.valid for t in mine),
            "refused": sum(t.refused for t in mine),
            "failures": sum(len(t.failures) for t in mine),
            "longest_s": round(slowest.longest_s, 3),
            "longest_seed": slowest.longest_seed,
            "grown_mb": round(max(t.grown_mb for t in mine), 1),
        }
    met = all(
        not r["failures"] and r["longest_s"] <= LONGEST_S and r["grown_mb"] <= MOST_MB for r in report.values()
    )  # fmt: skip
    print(json.dumps({"kinds": report, "inputs": sum(r["inputs"] for r in report.values()), "met": met}, indent=2))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
