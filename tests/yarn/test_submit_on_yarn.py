"""An unchanged script on YARN under ``submit``: placed, scaled, limited, and it outlives a container."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.fetched import needs_fetched
from tests.submit.test_submitted_script import SCRIPT, VERDICT, Submitted, decisions, submitted

from barograph.engines.spark.cluster.processes import python_environment
from barograph.engines.spark.driver.client import RemoteEngine, reachable
from barograph.engines.spark.query.checkpoint import last_committed_epoch
from barograph.model import Instance, Load, Outcome, Placement, Plan, RefusalCode, Rescale, Slot, Snapshot
from barograph.model.loads.schedule import encode
from barograph.testing.yarn import YarnCluster, start_yarn

EXECUTORS = 3
# A node has room for two executors (640 MB and Spark's 384), or for one and the application's master: so two executors
# share a node and have a slot each.
NODE_MB = 2560
RISES_AND_FALLS = "ramp 0s=1000 40s=1000 50s=5000 100s=5000 110s=1000 1500s=1000"
FALLEN_S = 125.0
TOO_MUCH = "ramp 0s=8000 1500s=8000"
pytestmark = [pytest.mark.spark, pytest.mark.slow]


class OnYarn:
    """The script, submitted to YARN."""

    def __init__(self, yarn: YarnCluster, folder: Path, program: Submitted) -> None:
        self.yarn, self.program, self.checkpoint = yarn, program, folder / "checkpoint"

    def driver(self) -> RemoteEngine:
        (found,) = [engine for engine, seen in reachable() if seen["master"] == "yarn"]
        return found

    def status(self) -> dict[str, Any]:
        return next((seen for _, seen in reachable() if seen["master"] == "yarn"), {})

    def topology(self) -> dict[str, Any]:
        return next(iter(self.status().get("topologies", ())), {})

    def executors(self) -> int:
        return sum(len(self.yarn.executors(node)) for node in self.yarn.nodes)

    def goes_on(self) -> None:
        """Until rows that were read after now are committed: the open epoch ends, and then one more."""
        epoch = last_committed_epoch(self.checkpoint) or 0
        self.program.settle(lambda: (last_committed_epoch(self.checkpoint) or 0) > epoch + 1, 180.0)

    def verdict(self) -> dict[str, Any]:
        checked = subprocess.run(
            [sys.executable, str(VERDICT), str(self.checkpoint)], env=python_environment(), capture_output=True,
            text=True, timeout=300, check=False,
        )  # fmt: skip
        assert checked.returncode == 0, checked.stderr[-3000:]
        found: dict[str, Any] = json.loads(checked.stdout.splitlines()[-1])
        return found


@pytest.fixture
def yarn(monkeypatch: pytest.MonkeyPatch) -> Iterator[YarnCluster]:
    with needs_fetched(), start_yarn(nodes=2, memory_mb=NODE_MB) as cluster:
        for name, value in cluster.environment().items():
            monkeypatch.setenv(name, value)
        yield cluster


@contextmanager
def on_yarn(yarn: YarnCluster, folder: Path, load: str, *more: str) -> Iterator[OnYarn]:
    # No node is released by itself: how many containers there are is YARN's matter, and the test's.
    settings = {
        **yarn.session_conf(), "spark.sql.shuffle.partitions": "2", "spark.barograph.nodes.releaseAfter": "never",
    }  # fmt: skip
    words = ["--workloads", "--master", "yarn", *more, "--num-executors", str(EXECUTORS), "--executor-cores", "6"]
    words += ["--executor-memory", "640m"]
    words += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    segments = encode(Load.parse(load).schedule(1500.0).segments)
    with submitted(folder, *words, str(SCRIPT), str(folder / "checkpoint"), segments) as program:
        try:
            there = OnYarn(yarn, folder, program)
            program.settle(lambda: bool(there.topology()), 300.0)
            yield there
            assert "did not get in" not in program.said
        except BaseException:
            sys.stderr.write(yarn.logs())
            raise


def test_an_unchanged_script_is_scaled_and_moved_and_outlives_a_container(
    yarn: YarnCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def done(what: str) -> list[dict[str, Any]]:
        return [d for d in decisions(capsys) if d.get("outcome") == "applied" and d[what]]

    with on_yarn(yarn, tmp_path, RISES_AND_FALLS, "--act") as there:
        begun_s, program = time.monotonic(), there.program
        program.settle(lambda: sum(len(n["executors"]) for n in there.status()["nodes"]) == EXECUTORS, 60.0)
        by_node = {node["name"]: len(node["executors"]) for node in there.status()["nodes"]}
        assert set(by_node) == set(yarn.nodes), "a node is a node manager's host"
        assert sorted(by_node.values()) == [1, 2]
        program.settle(lambda: bool(done("rescales")), 300.0)
        program.settle(lambda: bool(done("moves")), 300.0)
        looks: list[Look] = []

        def looked_often() -> bool:
            looks.extend(looks_at_limits(there))
            return len(looks) > 8 and {look.instance.split("/")[0] for look in looks} == {"source", "aggregate"}

        program.settle(looked_often, 120.0)
        assert [look for look in looks if look.used_pct > 1.1 * look.limit_pct + 2] == []
        before = there.topology()
        used = next(node for node, instances in before["by_node"].items() if instances)
        assert yarn.lose_containers(used) > 0
        program.settle(lambda: len(there.topology().get("restarts", ())) > len(before["restarts"]), 120.0)
        # YARN starts another container for it, and the query runs on.
        program.settle(lambda: there.executors() == EXECUTORS, 120.0)
        program.settle(lambda: time.monotonic() - begun_s > FALLEN_S, FALLEN_S)
        there.goes_on()
        program.end()
    verdict = there.verdict()
    assert verdict["rows"] > 150_000
    assert verdict["wrong"] == {}


def test_plans_by_hand_hold_and_a_lost_container_is_replaced(yarn: YarnCluster, tmp_path: Path) -> None:
    """The policy only advises, so nothing else changes what these plans order."""
    with on_yarn(yarn, tmp_path, TOO_MUCH) as there:
        program, driver = there.program, there.driver()
        began = running(there, driver)
        name, slots = began.topologies[0].name, sorted(w.slot for w in began.workers)
        (shared,) = {slot.node for slot in slots if slot.index == 1}
        (single,) = {slot.node for slot in slots} - {shared}
        assert slots == sorted([Slot(shared, 0), Slot(shared, 1), Slot(single, 0)])

        def applied(plan: Plan) -> None:
            outcome = driver.apply(plan)
            assert outcome.ok, outcome.refused

        def placed(where: dict[str, Slot]) -> None:
            """Every instance by its operator; two slots of one node are two containers."""
            topology = running(there, driver).topology(name)
            wanted = {instance: where[instance.operator] for instance in topology.instances()}
            applied(Plan(Placement(wanted)))
            program.settle(lambda: dict(driver.observe().placement.of_topology(name).slots) == wanted, 60.0)

        placed({"source": Slot(shared, 0), "aggregate": Slot(single, 0)})
        placed({"source": Slot(shared, 0), "aggregate": Slot(shared, 1)})
        there.goes_on()

        counts = [Instance(name, "aggregate", 0), Instance(name, "aggregate", 1)]
        for limit_pct in (10.0, 30.0):
            applied(Plan(limits_pct=dict.fromkeys(counts, limit_pct)))
            await_held(there, driver, counts, limit_pct)
        assert {w for node in there.status()["nodes"] for w in node["enforces"]} == {"cooperative"}
        applied(Plan(limits_pct=dict.fromkeys(counts, 100.0)))

        (kept,) = driver.keep_nodes(release=[shared]).left_out
        assert (kept.node, kept.code) == (shared, RefusalCode.NODE_IN_USE), "instances are there"
        assert driver.keep_nodes(release=[single]) == Outcome((f"released {single}",))
        program.settle(lambda: yarn.executors(single) == [], 60.0)
        there.goes_on()
        assert yarn.executors(single) == [], "YARN starts no other container for it"
        assert driver.keep_nodes(fetch=[single]) == Outcome((f"fetched {single}",))
        program.settle(lambda: len(driver.observe().workers) == EXECUTORS, 60.0)
        placed({"source": Slot(shared, 0), "aggregate": Slot(single, 0)})

        applied(Plan(rescales=(Rescale(name, "aggregate", 3),)))
        program.settle(lambda: there.topology().get("operators") == {"source": 2, "aggregate": 3}, 120.0)
        there.goes_on()
        assert there.topology()["restarts"] == []

        lost = yarn.executors(shared)
        assert yarn.lose_containers(shared) == 2
        program.settle(lambda: len(there.topology().get("restarts", ())) > 0, 120.0)
        program.settle(lambda: there.executors() == EXECUTORS, 120.0)
        assert not set(lost) & set(yarn.executors(shared)), "YARN started other containers"
        there.goes_on()
        program.end()
    verdict = there.verdict()
    assert verdict["rows"] > 20_000
    assert verdict["wrong"] == {}


def running(there: OnYarn, driver: RemoteEngine) -> Snapshot:
    """With all executors; a query that is between two runs is in no snapshot."""
    seen: list[Snapshot] = []

    def is_running() -> bool:
        seen.append(driver.observe())
        return bool(seen[-1].topologies) and len(seen[-1].workers) == EXECUTORS

    there.program.settle(is_running, 120.0)
    return seen[-1]


def use(there: OnYarn, driver: RemoteEngine) -> Snapshot:
    """What was used in the last three seconds."""
    driver.observe()
    over_s = time.monotonic() + 3.0
    there.program.settle(lambda: time.monotonic() > over_s)
    return driver.observe()


@dataclass(frozen=True)
class Look:
    instance: str
    limit_pct: float
    used_pct: float


def looks_at_limits(there: OnYarn) -> list[Look]:
    """Of instances whose limit and epoch were the same before and after."""
    before = there.topology()
    with closing(there.driver()) as driver:
        seen = use(there, driver)
    after = there.topology()
    if before["epoch"] != after["epoch"]:
        return []
    limits = {name: found["limit_pct"] for name, found in before["limits"].items()}
    same = {name: pct for name, pct in limits.items() if after["limits"].get(name, {}).get("limit_pct") == pct}
    found = []
    for name, limit_pct in same.items():
        operator, _, index = name.rpartition("/")
        row = seen.metrics.row(Instance(after["name"], operator, int(index)))
        found.append(Look(name, limit_pct, 100 * row.cpu_s / seen.cycle_s))
    return found


def await_held(there: OnYarn, driver: RemoteEngine, instances: list[Instance], limit_pct: float) -> None:
    """Until each uses what it may and no more, although it is due more rows than that is enough for. A look in which
    the limit was changed, or an epoch began, may see another use."""

    def is_held() -> bool:
        seen = use(there, driver)
        rows = [seen.metrics.row(instance) for instance in instances]
        sys.stderr.write(f"USED {limit_pct} {[(100 * r.cpu_s / seen.cycle_s, r.throttled_s) for r in rows]}\n")
        return all(
            0.7 * limit_pct < 100 * row.cpu_s / seen.cycle_s < 1.15 * limit_pct and row.throttled_s > 0.5
            for row in rows
        )

    there.program.settle(is_held, 90.0)
