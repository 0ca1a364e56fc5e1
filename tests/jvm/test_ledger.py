"""The driver's ledger behaves like a model of it, whatever is called in whatever order. No Spark runs."""

import json
import runpy
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from barograph.engines.spark.cluster.java import find_java, spark_jars
from barograph.engines.spark.conf import PLUGIN_JAR
from barograph.testing.local_cluster import TESTING_JAR

ROOT = Path(__file__).parents[2]
ANSWER_S = 60.0
HOLD_MS = 20
LONG_MS = 600_000
EXECUTORS = {"1": 2, "2": 3, "3": 1}
OWN = {"read": 1, "count": 2}  # the parallelism of an operator without orders
names = st.sampled_from(("a", "b", "c"))
instances = st.sampled_from(("read/0", "count/0", "count/1", "count/2", "count/9"))
places = st.dictionaries(instances, st.sampled_from((*EXECUTORS, "gone")), max_size=4)


class Console:
    """The real ledger: a call is a line of JSON, and so is its answer."""

    def __init__(self) -> None:
        path = ":".join(map(str, (TESTING_JAR, PLUGIN_JAR, *spark_jars())))
        command = [str(find_java().command), "-cp", path, "org.apache.spark.barograph.testing.LedgerConsole"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, what: str, **given: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **given}) + "\n")
        self._process.stdin.flush()
        assert select.select([self._process.stdout], [], [], ANSWER_S)[0], f"{what} {given} does not return"
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


class Orders(RuleBasedStateMachine):
    """orders, pinned, seated, cuts: as the ledger must have them. held: runs that must wait before their next epoch."""

    ledger: ClassVar[Console]

    @initialize()
    def begin_empty(self) -> None:
        self.ledger.ask("reset")
        self.version = int(self.ledger.ask("current")["version"])
        self.orders: dict[str, dict[str, Any]] = {}
        self.pinned: dict[str, tuple[str, int, dict[str, Any]]] = {}
        self.seated: dict[str, dict[str, str]] = {}
        self.cuts: dict[str, int] = {}
        self.cut_runs: dict[str, str] = {}
        self.runs = dict.fromkeys("abc", 0)
        self.epochs = dict.fromkeys("abc", 0)
        self.resting: list[str] = []
        self.lengths: dict[str, int] = {}
        self.held: set[str] = set()

    def of(self, name: str) -> dict[str, Any]:
        return self.orders.get(name, {"version": 0, "parallelism": {}, "places": {}})

    def run_of(self, name: str) -> str:
        return f"{name}-{self.runs[name]}"

    @rule(name=names, live=st.sets(st.sampled_from(tuple(EXECUTORS)), min_size=1))
    def an_epoch_is_planned(self, name: str, live: set[str]) -> None:
        run, epoch = self.run_of(name), self.epochs[name]
        self.epochs[name] += 1
        began = time.monotonic()
        pin = self.ledger.ask("begin", topology=name, run=run, epoch=epoch)
        took_s = time.monotonic() - began
        assert took_s >= (HOLD_MS / 1000 if run in self.held else 0.0)
        assert pin == self.of(name), "an epoch runs by the orders that held when it began"
        self.held.discard(run)
        self.pinned[name] = (run, epoch, pin)
        seats = {e: EXECUTORS[e] for e in live}
        found = self.ledger.ask("seat", topology=name, run=run, epoch=epoch, live=seats)
        self.judge_seats(name, pin, seats, found)
        self.seated[name] = found

    def judge_seats(self, name: str, pin: dict[str, Any], seats: dict[str, int], found: dict[str, str]) -> None:
        counts = {**OWN, **pin["parallelism"]}
        assert set(found) == {f"{operator}/{k}" for operator in OWN for k in range(counts[operator])}
        others = [e for topology, of in self.seated.items() if topology != name for e in of.values()]
        free = {e: count - others.count(e) for e, count in seats.items()}
        left = {e: count - list(found.values()).count(e) for e, count in free.items()}
        for instance, executor in found.items():
            wish = pin["places"].get(instance)
            if executor:
                assert executor in seats, f"{instance} sits on {executor}, which is not there"
                assert left[executor] >= 0, f"{executor} has {left[executor]} seats left"
            else:
                assert max(left.values()) <= 0, f"{instance} has no seat, and {left} are left"
            if wish != executor and wish in seats:
                assert left[wish] <= 0, f"{instance} is not where it was ordered to, although there is a seat"

    @rule(name=names)
    def an_epoch_that_has_begun_keeps_its_orders(self, name: str) -> None:
        if name in self.pinned:
            run, epoch, pin = self.pinned[name]
            assert self.ledger.ask("begin", topology=name, run=run, epoch=epoch) == pin

    @rule(name=names, parallelism=st.dictionaries(st.sampled_from(("read", "count")), st.integers(1, 3)), places=places)
    def orders_change(self, name: str, parallelism: dict[str, int], places: dict[str, str]) -> None:
        self.ledger.ask("order", topology=name, parallelism=parallelism, places=places)
        version = self.of(name)["version"] + 1
        self.orders[name] = {"version": version, "parallelism": parallelism, "places": places}

    @rule(topologies=st.sets(names, min_size=1))
    def cut(self, topologies: set[str]) -> None:
        self.order_cut(topologies, {})

    def order_cut(self, topologies: set[str], hold_ms: dict[str, int]) -> None:
        found = self.ledger.ask("cut", topologies=sorted(topologies), hold_ms=hold_ms)
        ending = {name: self.pinned[name][:2] for name in topologies if name in self.pinned}
        assert found == {name: epoch for name, (_, epoch) in ending.items()}
        for name, (run, epoch) in ending.items():
            self.cuts[run] = max(epoch, self.cuts.get(run, -1))
            self.cut_runs[name] = run
        self.version += bool(ending)

    @rule(name=names)
    def the_end_of_a_cut_epoch_is_told(self, name: str) -> None:
        if name not in self.pinned or name not in self.seated:
            return
        epoch = self.pinned[name][1]
        self.order_cut({name}, {})
        assert self.ledger.ask("await epoch", topology=name, epoch=epoch) == -1
        self.an_epoch_is_planned(name, set(EXECUTORS))
        assert self.ledger.ask("await epoch", topology=name, epoch=epoch) == self.pinned[name][1]

    @rule(name=names, then=st.sampled_from(("waits", "is released", "is given up")))
    def hold(self, name: str, then: str) -> None:
        """A hold ends by itself, when it is released, and with what waits for it; it never stays."""
        if name not in self.pinned:
            return
        run = self.pinned[name][0]
        self.order_cut({name}, {name: HOLD_MS if then == "waits" else LONG_MS})
        if then == "is released":
            self.ledger.ask("release", topology=name)
        elif then == "is given up":
            assert self.ledger.ask("await held", topology=name) is False
        elif run == self.run_of(name):
            self.held.add(run)

    @rule(name=names)
    def a_run_dies_and_its_epoch_is_repeated(self, name: str) -> None:
        if name in self.pinned:
            self.runs[name] += 1
            self.epochs[name] = self.pinned[name][1]

    @rule(name=names, at_once=st.booleans())
    def what_has_ended_is_forgotten(self, name: str, at_once: bool) -> None:
        """All runs but the present ones; or the last run of a topology, while another has not begun yet."""
        if at_once:
            gone = {self.run_of(name)}
            self.runs[name] += 1
            self.ledger.ask("forget", run=next(iter(gone)))
        else:
            kept = [self.run_of(n) for n in self.runs]
            gone = ({run for run, _, _ in self.pinned.values()} | set(self.cuts)) - set(kept)
            self.ledger.ask("keep only", runs=kept)
        for topology in [n for n, (run, _, _) in self.pinned.items() if run in gone]:
            del self.pinned[topology]
            self.seated.pop(topology, None)
        self.version += bool(gone & set(self.cuts))
        self.cuts = {run: epoch for run, epoch in self.cuts.items() if run not in gone}
        self.held -= gone

    @rule(topologies=st.sets(names))
    def rest(self, topologies: set[str]) -> None:
        self.ledger.ask("rest", topologies=sorted(topologies))
        self.version += self.resting != sorted(topologies)
        self.resting = sorted(topologies)

    @rule(lengths=st.dictionaries(names, st.integers(1, 60_000)))
    def pace(self, lengths: dict[str, int]) -> None:
        self.ledger.ask("pace", lengths_ms=lengths)
        self.version += self.lengths != lengths
        self.lengths = lengths

    @invariant()
    def executors_are_told_exactly_what_was_ordered(self) -> None:
        if hasattr(self, "cuts"):
            assert self.ledger.ask("current") == {
                "version": self.version, "cuts": self.cuts, "resting": self.resting, "lengths": self.lengths,
            }  # fmt: skip


@pytest.fixture(scope="module")
def console() -> Iterator[Console]:
    compiling = runpy.run_path(str(ROOT / "jvm" / "compile.py"))
    compiling["compile_shipped"]()
    compiling["compile_testing"]()
    made = Console()
    yield made
    made.end()


@pytest.mark.limit(300)  # it may have to compile the jars first
def test_the_ledger_in_any_order(console: Console) -> None:
    Orders.ledger = console
    run_state_machine_as_test(Orders, settings=settings(max_examples=25, stateful_step_count=25, deadline=None))
