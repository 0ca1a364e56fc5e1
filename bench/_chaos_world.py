"""A simulated cluster with faults that follow from one seed: what is reported, what is answered, and what breaks.

It is the engine behind a controller. Telemetry is running totals, as on Spark: what a silent topology did comes with
its next report, and every figure has its true age. It judges nothing (``_chaos_laws``).
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from barograph.control.node_pool import NodeOrders
from barograph.engines.port import CONTROLLER
from barograph.engines.sim import Simulator, parse_scenario
from barograph.engines.sim.world.changes import TopologyChange
from barograph.engines.sim.world.topology_state import TopologyPhase
from barograph.engines.spark.driver.client import DriverFailed
from barograph.model import Instance, Metrics, Outcome, Plan, Slot, Snapshot
from barograph.model.metrics import COLUMNS
from bench._chaos_faults import FAULTS, SILENCES, drawn
from bench._chaos_scenario import scenario_text

OBSERVE_FAILS = "the driver says that it failed to look"


class KilledError(BaseException):
    """The controller's process is gone. No handler of the product may catch it."""


@dataclass
class Report:
    """What the driver knows of a topology: totals by instance, and when they were true."""

    at_s: float = 0.0
    totals: dict[Instance, dict[str, float]] = field(default_factory=dict)


class ChaosWorld:
    """chance: all faults come from it. steady: no load changes. story: what happened, in order."""

    def __init__(self, chance: random.Random, seconds: float, steady: bool, faults: Sequence[str] = FAULTS) -> None:
        self.text = scenario_text(chance, seconds, steady)
        self.sim = Simulator(parse_scenario(self.text, "chaos"), seed=chance.randrange(1000), grain="flows")
        self.sim.start()
        self.story: list[str] = []
        self.end_s, self.skew_s, self.wall_s = seconds, 0.0, 1.7e9
        self.armed: list[str] = []  # faults of the next call
        self.kill_at = ""
        self.disk_full = False
        self.silent_until: dict[str, tuple[str, float]] = {}
        self.asleep: set[str] = set()
        self._coming: list[tuple[float, str]] = []
        self._true: dict[str, Report] = {t.name: Report() for t in self.sim.topologies}
        self._earlier: dict[str, Report] = dict(self._true)
        self._known: dict[str, Report] = dict(self._true)
        self._seen: dict[str, Report] = dict(self._true)
        self._last: Snapshot | None = None
        self._rows: dict[Instance, dict[str, float]] = {}  # as they were reported last
        self.covers_s: dict[str, float] = {}
        self.ages_s: dict[str, float] = {}
        self.between: Callable[[Snapshot], object] = lambda _now: None
        self.plans: list[tuple[Snapshot, Plan, bool]] = []  # seen, asked, and whether it was carried out
        names, nodes = [t.name for t in self.sim.topologies], [n.name for n in self.sim.scenario.nodes]
        self._faults = drawn(chance, seconds, faults, names, nodes)

    # time

    def mono(self) -> float:
        return self.sim.now_s + self.skew_s

    def wall(self) -> float:
        return self.wall_s + self.sim.now_s

    def say(self, what: str) -> None:
        self.story.append(f"{self.sim.now_s:7.2f} s  {what}")

    def advance(self, seconds: float) -> None:
        end_s = self.sim.now_s + seconds
        while self.sim.now_s < end_s - 1e-9:
            self._break_what_is_due()
            due = [end_s, *(f[0] for f in self._faults[:1]), *(c[0] for c in self._coming[:1])]
            self.sim.advance(max(0.01, min(due) - self.sim.now_s))
            if held := self.sim.priorities.held:
                self.say(f"new levels: {', '.join(f'{t.name}={t.level}' for t in self.sim.topologies)}")
                try:
                    self.between(self.glance())
                finally:
                    self.sim.priorities.release(held)

    def _break_what_is_due(self) -> None:
        now_s = self.sim.now_s
        while self._coming and self._coming[0][0] <= now_s:
            name = self._coming.pop(0)[1]
            for k in range(next(n.slots for n in self.sim.scenario.nodes if n.name == name)):
                self.sim.seats.renew(Slot(name, k))
            self.asleep.discard(name)
            self.sim.version += 1
            self.say(f"{name} was fetched")
        while self._faults and self._faults[0][0] <= now_s:
            _, kind, what = self._faults.pop(0)
            self.say(f"FAULT {kind} {what or ''}")
            self._break(kind, what)

    def _break(self, kind: str, what: Any) -> None:
        now_s = self.sim.now_s
        if kind in SILENCES:
            self.silent_until[what[0]] = (kind, now_s + what[1])
        elif kind == "node":
            alive = {s.node for s in self.sim.workers}
            if what[0] in alive and len(alive) > 1:
                self.sim.lose(what[0], back_s=what[1])
        elif kind == "clock":
            self.wall_s += what
        elif kind == "disk":
            self.disk_full = not self.disk_full
            if self.disk_full:
                self._faults = sorted([*self._faults, (now_s + what, "disk", what)], key=lambda f: f[0])
        elif kind == "kill":
            self.kill_at = what
        elif kind == "level":
            t, level = what
            state = self.sim.states[t]
            if state.phase is TopologyPhase.RUNNING and self.sim.topologies[t].level != level:
                state.order(TopologyChange(level=level), now_s)
        elif kind == "slow":
            self.skew_s += what  # the controller's own clock goes on while it does nothing
        else:
            self.armed.append(kind)

    def step(self, point: str) -> None:
        """The controller is about to do this."""
        if self.kill_at == point:
            self.kill_at = ""
            self.say(f"the controller is killed: {point}")
            raise KilledError(point)

    def _take(self, *kinds: str) -> str:
        found = next((k for k in self.armed if k in kinds), "")
        if found:
            self.armed.remove(found)
        return found

    # the port

    def observe(self, observer: str = CONTROLLER) -> Snapshot:  # noqa: ARG002  # one observer
        self.step("observing")
        if self._take("unreachable"):
            raise ConnectionError("the driver is away")
        if self._take("observe fails"):
            raise DriverFailed(OBSERVE_FAILS)
        seen = self._reported(self.sim.observe())
        self._last = seen
        return seen

    def glance(self) -> Snapshot:
        now = self.sim.glance()
        last = self._last
        if last is None or now.metrics.instances != last.metrics.instances:
            return self._of_the_open_cycle(now)
        return replace(
            now, cycle_s=last.cycle_s, metrics=last.metrics, traffic=last.traffic, node_metrics=last.node_metrics,
            topology_metrics=last.topology_metrics, asleep=self._asleep(),
        )  # fmt: skip

    def apply(self, plan: Plan) -> Outcome:
        self.step("before apply")
        seen = self._last
        assert seen is not None
        fault = self._take("no answer", "not applied", "failed")
        if fault == "not applied":
            raise ConnectionError("the plan did not arrive")
        if fault == "failed":
            raise RuntimeError("the engine failed")
        before = self.sim.version
        outcome = self.sim.apply(plan)
        carried_out = outcome.ok and self.sim.version != before
        self.plans.append((seen, plan, carried_out))
        if outcome.moves or outcome.rescales or outcome.refused:
            self.say("; ".join([*outcome.done[:6], *(f"refused {r.what}: {r.reason}" for r in outcome.refused)]))
        self.step("after apply")
        if fault:
            raise TimeoutError("the outcome was lost")
        return outcome

    def nodes(self, orders: NodeOrders) -> Outcome:
        self.step("nodes")
        for name in orders.release:
            self.say(f"release {name}")
            self.sim.lose(name)
            self.asleep.add(name)
        for name in orders.fetch:
            if name in self.asleep and name not in {c[1] for c in self._coming}:
                self.say(f"fetch {name}")
                self._coming = sorted([*self._coming, (self.sim.now_s + 6, name)])
        return Outcome((*(f"released {n}" for n in orders.release), *(f"fetched {n}" for n in orders.fetch)))

    def _asleep(self) -> tuple[Any, ...]:
        coming = {c[1] for c in self._coming}
        return tuple(n for n in self.sim.scenario.nodes if n.name in self.asleep - coming)

    # telemetry

    def _silent(self, now_s: float) -> dict[str, str]:
        return {n: kind for n, (kind, until_s) in self.silent_until.items() if until_s > now_s}

    def _of_the_open_cycle(self, now: Snapshot) -> Snapshot:
        """A look between two cycles: what was counted since the last one, but of what is silent."""
        silent = self._silent(now.at_s)
        for name in {t.name for t in now.topologies} - set(silent):
            self.covers_s[name], self.ages_s[name] = now.cycle_s, 0.0
        heard = [k for k, i in enumerate(now.metrics.instances) if i.topology not in silent]
        columns = {name: column[heard] for name, column in now.metrics.columns.items()}
        return replace(
            now,
            metrics=Metrics(tuple(now.metrics.instances[k] for k in heard), columns, now.metrics.age_s[heard]),
            traffic=tuple(e for e in now.traffic if e.topology not in silent),
            topology_metrics=tuple(m for m in now.topology_metrics if m.topology not in silent),
            asleep=self._asleep(),
        )

    def _reported(self, seen: Snapshot) -> Snapshot:
        now_s = seen.at_s
        silent = self._silent(now_s)
        rows: dict[Instance, dict[str, float]] = {}
        ages: dict[Instance, float] = {}
        for t in seen.topologies:
            name = t.name
            self._earlier[name], self._true[name] = self._true[name], self._counted(seen, name)
            if silent.get(name) == "late":
                self._known[name] = self._earlier[name]
            elif name not in silent:
                self._known[name] = self._true[name]
            known, before = self._known[name], self._seen[name]
            self._seen[name] = known
            self.covers_s[name] = known.at_s - before.at_s
            self.ages_s[name] = now_s - known.at_s
            if silent.get(name) == "zeroed":
                continue
            for instance in t.instances():
                totals, had = known.totals.get(instance, {}), before.totals.get(instance, {})
                row = {c: max(0.0, totals.get(c, 0.0) - (had.get(c, 0.0) if c != "pending" else 0.0)) for c in COLUMNS}
                again = self._rows.get(instance) if silent.get(name) == "repeated" else None
                rows[instance] = row if again is None else again
                ages[instance] = self.ages_s[name]
        self._rows = {**self._rows, **rows}
        columns = {c: np.array([r[c] for r in rows.values()]) for c in COLUMNS}
        repeated, last = [n for n, kind in silent.items() if kind == "repeated"], self._last
        return replace(
            seen,
            metrics=Metrics(tuple(rows), columns, np.array(list(ages.values()))),
            traffic=(
                *(e for e in seen.traffic if e.topology not in silent),
                *(e for e in (last.traffic if last else ()) if e.topology in repeated),
            ),
            topology_metrics=(
                *(m for m in seen.topology_metrics if m.topology not in silent),
                *(m for m in (last.topology_metrics if last else ()) if m.topology in repeated),
            ),
            asleep=self._asleep(),
        )

    def _counted(self, seen: Snapshot, name: str) -> Report:
        before = self._true[name].totals
        found = {}
        for at, instance in enumerate(seen.metrics.instances):
            if instance.topology == name:
                had = before.get(instance, {})
                found[instance] = {
                    c: float(column[at]) + (had.get(c, 0.0) if c != "pending" else 0.0)
                    for c, column in seen.metrics.columns.items()
                }
        return Report(seen.at_s, {**before, **found})
