"""A controller on the simulator with faults from seeds: telemetry, outcomes, clocks, nodes, disks and kills; laws hold.

Loop, guards, priority levels, node pool and history run as in a real controller. A seed gives a cluster, loads and
faults: telemetry lost, late, repeated or zeroed; a driver that does not answer, answers that it failed to look or to
apply, or whose answer is lost; wall clocks that jump back and forth; nodes that flap; a full disk; the controller
killed at any step and started again. The laws are in ``_chaos_laws``. BAROGRAPH_CHAOS_CYCLES sets how many cycles in
all (100,000); BAROGRAPH_CHAOS_SEED runs one seed alone and prints its story; SEED:CYCLES:PART[:POLICY] runs it as a
test did. Bars: no law is broken; there were faults, kills, changes and
cycles with held figures, without which laws judge nothing, and seeds that must come to rest, for which much of a run
must be free of faults and of changes of load.
"""

import errno
import json
import logging
import multiprocessing
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from barograph.control.guards import Guards
from barograph.control.loop import Loop, Settings
from barograph.control.node_pool import Upkeep
from barograph.control.quiet_moments import Quiet
from barograph.history import Recorder, gaps
from barograph.history import files as history_files
from barograph.model import Cycle, Snapshot
from barograph.policy.definition import Policy, with_options
from barograph.policy.registry import named
from bench import _chaos_laws as laws
from bench._chaos_faults import FAULTS
from bench._chaos_policy import restless
from bench._chaos_scenario import CYCLE_S
from bench._chaos_world import OBSERVE_FAILS, ChaosWorld, KilledError

CYCLES, PER_SEED = 100_000, 100
GUARDS = Guards(cuts_per_hour=12, moves_per_hour=60, rescales_per_hour=6, settle_cycles=2)
MOST_SHOWN = 3
JUDGED = ("faults", "kills", "changes", "cycles_with_held_figures", "seeds_that_must_rest")  # there must be some
ADAPTIVE_PART = 0.2  # it takes most of the time


@dataclass
class Told:
    """What became of a seed. rests: whether it had to come to rest. breaches: the laws that were broken, one sentence
    each."""

    seed: int
    cycles: int = 0
    faults: int = 0
    kills: int = 0
    held: int = 0
    changes: int = 0
    rests: bool = False
    breaches: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)


class _LeftOut(logging.Handler):
    """Cycles that the loop leaves out because something in it is refused as bad input, or fails without a fault."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "left out" in record.getMessage() and OBSERVE_FAILS not in record.getMessage():
            self.found.append(record.getMessage())


class ChaosRun:
    """One seed. guards: of the controller; the laws are always those of ``GUARDS``. policy: instead of the seed's."""

    def __init__(
        self,
        seed: int,
        folder: Path,
        cycles: int = PER_SEED,
        guards: Guards = GUARDS,
        faults: Sequence[str] = FAULTS,
        policy: Policy | None = None,
    ) -> None:
        chance = random.Random(f"chaos {seed}")
        self.steady = chance.random() < 0.5
        self.world = ChaosWorld(chance, cycles * CYCLE_S, self.steady, faults)
        policy = policy or _policy(chance)
        upkeep = Upkeep(release_after_s=chance.choice((None, 12.0)), spare=chance.randint(0, 1))
        quiet = Quiet(known_cycles=chance.choice((0, 3)))
        self.settings = Settings(policy, CYCLE_S, guards=guards, quiet=quiet, upkeep=upkeep)
        self.folder, self.told, self.done = folder, Told(seed), []
        self.world.say(f"policy {policy.name}, {self.world.text!r}")
        self._counted = 0

    done: list[laws.Change]

    @property
    def rests(self) -> bool:
        """Whether it should do nothing after a while. The restless policy never does, and that of Liu et al. moves
        instances with its shares, as published: what these do, only guards limit."""
        return self.steady and self.settings.policy.name not in ("restless", "liu")

    def go(self) -> Told:
        world, heard = self.world, _LeftOut()
        log = logging.getLogger("barograph.control.loop")
        log.addHandler(heard)
        try:
            world.advance(CYCLE_S)
            with self._disk():
                while world.sim.now_s < world.end_s and not self.told.breaches:
                    self._one_controller()
                world.disk_full = False
                self._finish()
        except Exception:  # noqa: BLE001  # no exception: this is a law
            self.told.breaches.append(traceback.format_exc(limit=-6))
        finally:
            log.removeHandler(heard)
        self.told.breaches += heard.found
        self.told.faults = sum("FAULT" in line for line in world.story)
        self.told.story = world.story
        return self.told

    @contextmanager
    def _disk(self) -> Iterator[None]:
        put = history_files.put

        def limited(table: pa.Table, path: Path) -> int:
            self.world.step("recording")
            if self.world.disk_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return put(table, path)

        with patch("barograph.history.write.put", limited):
            yield

    def _one_controller(self) -> None:
        world = self.world
        recorder = loop = None
        try:
            recorder = Recorder(self.folder, self.settings.policy.name, "act", clock=world.wall, held_mb=0.2)
            loop = Loop(world, self.settings, recorder, nodes=world.nodes)
            loop.recall(self.folder)
            world.between = loop.turn_between
            self._watch(loop)
            loop.run(world.mono, self._wait)
        except KilledError:
            self.told.kills += 1
            world.between = lambda _now: None
            self._take_in(loop, None)
            self._forget(recorder)
            world.advance(3.0)
        finally:
            if recorder is not None:
                recorder.close()

    def _forget(self, recorder: Recorder | None) -> None:
        """What was still in the memory of the controller, because the disk was full, is not known to the next one."""
        held = [] if recorder is None else [e.cycle.snapshot.at_s for e in recorder.held() if e.cycle is not None]
        if held:
            self.done = [replace(c, unknown=c.unknown or c.at_s >= held[0]) for c in self.done]

    def _watch(self, loop: Loop) -> None:
        """Each cycle is judged when the loop remembers it."""
        turn, between = loop.turn, loop.turn_between

        def judged() -> Cycle:
            cycle = turn()
            self.told.cycles += 1
            self._take_in(loop, cycle)
            return cycle

        def judged_between(now: Snapshot) -> Cycle | None:
            cycle = between(now)
            self._take_in(loop, cycle)
            return cycle

        loop.turn = judged  # type: ignore[method-assign]
        self.world.between = judged_between

    def _take_in(self, loop: Loop | None, cycle: Cycle | None) -> None:
        """Judge what was planned and done. cycle: None if the controller was killed before it could record it."""
        world, found = self.world, []
        for seen, plan, carried_out in world.plans[self._counted :]:
            whole = cycle if cycle is not None and cycle.plan is plan else None
            if whole is None and loop is not None and loop.history:
                whole = replace(loop.history[-1], snapshot=seen, plan=plan)
            if carried_out and whole is not None:
                for change in laws.changes_of(seen, whole, unknown=cycle is None):
                    self.done.append(change)
                    self.told.changes += 1
                    found += laws.together(
                        laws.budgets(GUARDS, self.done), laws.cooldowns(GUARDS, self.done),
                        laws.oscillation(GUARDS, self.done) if self.steady else (),
                    )  # fmt: skip
        self._counted = len(world.plans)
        if cycle is not None:
            found += laws.stale_plan(cycle, world.ages_s, world.covers_s)
            self.told.held += any(r.code.value == "figures-stale" for r in cycle.plan.reasons)
        found += laws.together(laws.seats(world), laws.rows(world))
        for breach in found:
            world.say(f"BROKEN {breach}")
        self.told.breaches += found

    def _wait(self, seconds: float) -> bool:
        self.world.advance(max(seconds, 0.05))
        return self.world.sim.now_s >= self.world.end_s or bool(self.told.breaches)

    def _finish(self) -> None:
        """There is room on the disk again: one more cycle, then the history has no gap that is not marked."""
        if self.told.breaches:
            return
        world = self.world
        world.kill_at, world.armed = "", []
        recorder = Recorder(self.folder, self.settings.policy.name, "act", clock=world.wall)
        Loop(world, self.settings, recorder).turn()
        recorder.close()
        last_fault_s = max((float(s.split(" s")[0]) for s in world.story if "FAULT" in s), default=0.0)
        self.told.rests = self.rests and laws.must_rest(world, last_fault_s)
        self.told.breaches += [*gaps(self.folder), *(laws.rest(world, self.done) if self.told.rests else ())]


def _policy(chance: random.Random) -> Policy:
    if chance.random() < ADAPTIVE_PART:
        return with_options(named("adaptive"), {"known_s": chance.choice((0.0, 30.0))})
    if chance.random() < 0.3:
        return named(chance.choice(("liu", "autoscale", "even", "true-rate", "dps")))
    return restless()


def attempt(
    seed: int,
    cycles: int = PER_SEED,
    guards: Guards = GUARDS,
    faults: Sequence[str] = FAULTS,
    policy: Policy | None = None,
) -> Told:
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    package = logging.getLogger("barograph")
    level = package.level
    package.setLevel(logging.WARNING)
    for handler in package.handlers:
        handler.setLevel(logging.ERROR)
    try:
        with tempfile.TemporaryDirectory(prefix="chaos-", dir=place) as folder:
            return ChaosRun(seed, Path(folder), cycles, guards, faults, policy).go()
    finally:
        package.setLevel(level)


def main() -> int:
    global ADAPTIVE_PART
    alone = os.environ.get("BAROGRAPH_CHAOS_SEED")
    if alone is not None:
        seed, _, rest = alone.partition(":")
        length, part, policy, *_ = (*rest.split(":"), "", "", "")
        ADAPTIVE_PART = float(part or ADAPTIVE_PART)
        told = attempt(int(seed), int(length or PER_SEED), policy=named(policy) if policy else None)
        print("\n".join([*told.story, *told.breaches, replace(told, story=[]).__repr__()]))
        return 1 if told.breaches else 0
    wanted = int(os.environ.get("BAROGRAPH_CHAOS_CYCLES", CYCLES))
    began = time.monotonic()
    cycles, found = 0, []
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for told in _until(pool, wanted):
            cycles += told.cycles
            found.append(replace(told, story=[]))
            if told.breaches and sum(bool(t.breaches) for t in found) <= MOST_SHOWN:
                print("\n".join([f"seed {told.seed}:", *told.story, *told.breaches]), file=sys.stderr)
    broken = sorted(t.seed for t in found if t.breaches)
    report: dict[str, Any] = {
        "cycles": cycles, "seeds": len(found), "faults": sum(t.faults for t in found),
        "kills": sum(t.kills for t in found), "changes": sum(t.changes for t in found),
        "cycles_with_held_figures": sum(t.held for t in found), "seeds_that_must_rest": sum(t.rests for t in found),
        "seconds": round(time.monotonic() - began), "broken_seeds": broken,
    }  # fmt: skip
    met = not broken and all(report[name] for name in JUDGED)
    print(json.dumps({**report, "met": met}, indent=2))
    return 0 if met else 1


def _until(pool: Any, wanted: int) -> Iterator[Told]:
    """Seeds from 0 on, until so many cycles were run."""
    cycles, seed, batch = 0, 0, 64
    while cycles < wanted:
        for told in pool.map(attempt, range(seed, seed + batch), chunksize=4):
            cycles += told.cycles
            yield told
        seed += batch


if __name__ == "__main__":
    sys.exit(main())
