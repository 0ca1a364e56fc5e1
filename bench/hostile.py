"""Hostile inputs: each gives a valid value or one sentence, within 1 s and 200 MB; no traceback and no hang.

Inputs are made from seeds: configurations, loads, recorded clusters, scenarios, plans, messages to a driver's endpoint
and files of a history. BAROGRAPH_HOSTILE sets how many in all (1,000,000). Each kind gets at least a tenth of them and
runs in processes of its own. A failure is printed with its kind and seed; ``python -m bench.hostile KIND SEED`` runs
that one again.

The time of an input is what it takes by the wall clock less the time in which the threads of the process that reads
it wait for a core, which other work on the machine adds; it is at least the CPU time of all those threads. So an input
that waits for something else is a slow one too. A wall clock ends what takes 4 s, because it hangs: it waits for
something, or for ever. That is less than the 5 s after which a client of the endpoint gives up, so that an answer which
never comes is a hang and no refusal. An input above 1 s, or one that hangs, is tried up to three times more, and its
best time counts: collections of garbage and first uses of a module are not its own.
Bars: no failure, no hang; no input above 1 s; no process above 200 MB more than it began with. A bench that is
ended early reports what it has found by then, and misses its bars.
"""

import json
import logging
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from barograph.model import BadInput
from bench._hostile_readers import readers

KINDS = ("configuration", "load", "recorded cluster", "scenario", "plan", "endpoint message", "history file")
CHEAP = ("load", "plan", "endpoint message")  # these get what is left over
COUNT = 1_000_000
LONGEST_S, HANG_S = 1.0, 4.0
TRIES_AGAIN = 3
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
            _count(best(take, content), seed, tally)
        tally.grown_mb = _resident_mb() - before
    return tally


@dataclass(frozen=True)
class Try:
    """What one input gave: it was valid, or refused, or a failure with what is wrong. took_s: by the wall
    clock, less what it waited for a core, where that was measured."""

    took_s: float
    valid: bool = False
    failure: str | None = None
    hung: bool = False


class _HangError(Exception):
    pass


def best(take: Callable[[bytes], object], content: bytes) -> Try:
    """The quickest of up to four tries."""
    tries = [_try(take, content, lambda: 0.0)]
    while (tries[-1].took_s > LONGEST_S or tries[-1].hung) and len(tries) <= TRIES_AGAIN:
        tries.append(_try(take, content, _waited_for_a_core_s))
    failed = next((t for t in tries if t.failure and not t.hung), None)  # no quicker try takes it back
    return failed or min(tries, key=lambda t: (t.hung, t.took_s))


def _try(take: Callable[[bytes], object], content: bytes, waited_s: Callable[[], float]) -> Try:
    """waited_s: for how long the threads of this process have waited for a core so far."""
    waited_before_s, began_s, cpu_began_s = waited_s(), time.monotonic(), time.process_time()
    valid, failure = False, None
    signal.setitimer(signal.ITIMER_REAL, HANG_S)
    try:
        take(content)
        valid = True
    except BadInput as error:
        if "\n" in str(error) or not str(error):
            failure = f"not one sentence: {str(error)[:200]!r}"
    except _HangError:
        pass
    except Exception:  # noqa: BLE001  # this is what is looked for
        failure = traceback.format_exc(limit=-3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    # Whatever became of the alarm: a handler of the product may have taken it for an error of the input.
    wall_s, cpu_s = time.monotonic() - began_s, time.process_time() - cpu_began_s
    took_s = max(cpu_s, wall_s - max(0.0, waited_s() - waited_before_s))
    hung = wall_s >= HANG_S
    if hung:
        valid, failure = False, f"it took longer than {HANG_S:g} s"
    return Try(took_s, valid, failure, hung)


def _waited_for_a_core_s() -> float:
    """All threads together; nothing where the kernel does not count it."""
    waited_ns = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):  # a thread that has ended meanwhile
            waited_ns += int(path.read_text().split()[1])
    return waited_ns / 1e9


def _count(found: Try, seed: int, tally: Tally) -> None:
    if found.failure is not None:
        tally.failures.append((seed, found.failure))
    elif found.valid:
        tally.valid += 1
    else:
        tally.refused += 1
    if found.took_s > tally.longest_s:
        tally.longest_s, tally.longest_seed = found.took_s, seed


def _hangs(*_: object) -> None:
    raise _HangError


def _resident_mb() -> float:
    """The most so far. ``getrusage`` would begin with the peak of the process that started this one."""
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


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
    work.sort(key=lambda shard: shard[1] / wanted[shard[0]])  # all kinds alike, however early it is ended
    found: list[Tally] = []
    # A process for each shard: memory is measured from its start, and a crash is noticed by the pool.
    with (
        suppress(KeyboardInterrupt, SystemExit),
        multiprocessing.get_context("spawn").Pool(os.cpu_count(), maxtasksperchild=1) as pool,
    ):
        for tally in pool.imap_unordered(_shard, work):
            found.append(tally)
            for seed, what in tally.failures[:MOST_SHOWN]:
                print(f"{tally.kind} {seed}: {what}", file=sys.stderr)
    return judged(found, sum(wanted.values()))


def judged(found: Sequence[Tally], wanted: int) -> int:
    """Print the report of all shards. Returns the exit code. wanted: so many inputs must have been tried."""
    report = {}
    for kind in sorted({t.kind for t in found}, key=KINDS.index):
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
    tried = sum(t.count for t in found)
    met = tried == wanted and all(
        not r["failures"] and r["longest_s"] <= LONGEST_S and r["grown_mb"] <= MOST_MB for r in report.values()
    )
    print(json.dumps({"kinds": report, "inputs": tried, "met": met}, indent=2))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
