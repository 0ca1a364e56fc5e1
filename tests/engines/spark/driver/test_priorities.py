"""Epoch lengths, rest, and the priority protocol on a real cluster."""

import json
import time
from itertools import pairwise

import pytest

from barograph.cli.main import main
from barograph.engines.spark.driver.client import RemoteEngine
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.model import BadInput, Plan
from barograph.priority.machine import PriorityPhase
from barograph.priority.service import priorities_of, serve
from barograph.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def stage(shared_stage: LocalCluster) -> LocalCluster:
    serve(shared_stage.supervisor)
    return shared_stage


@pytest.mark.slow
def test_a_requested_epoch_length_applies_to_the_present_epoch_too(stage: LocalCluster) -> None:
    assert stage.supervisor.endpoint is not None
    remote = RemoteEngine(stage.supervisor.endpoint.path)
    with stage.query("paced", epoch_s=600.0) as counting:
        remote.ask("pace", {"paced": 1.0})
        first = counting.epoch()
        counting.settle(lambda: counting.epoch() >= first + 3)
        planned_ms = [e.planned_ms for e in stage.engine.epochs("paced") if e.epoch > first]
        lasted_ms = [b - a for a, b in pairwise(planned_ms)]
        assert min(lasted_ms) >= 900, "an epoch lasts at least as long as it should"
        (paced,) = [t for t in remote.status()["topologies"] if t["name"] == "paced"]
        assert paced["epoch_s"] == 1.0
        remote.ask("pace", {"paced": 300.0})
        stage.engine.apply(Plan(cuts=("paced",)))
        epoch, until = counting.epoch(), time.monotonic() + 3.0
        counting.settle(lambda: time.monotonic() > until)
        assert counting.epoch() == epoch, "longer again than before"
        assert counting.verdict().exact
    remote.close()


def test_a_topology_without_a_node_rests_and_loses_nothing(stage: LocalCluster) -> None:
    with stage.query("resting") as counting:
        assert stage.engine.apply(Plan(rests=("resting",))).done == ("the sources of resting rest",)
        counting.settle(lambda: stage.engine.is_still("resting", 1.0))
        assert stage.engine.apply(Plan(cuts=("resting",))).ok, "a topology that rests can be cut"
        told = time.monotonic() + 1.0  # the last rows out are reported when their epoch has ended
        counting.settle(lambda: time.monotonic() > told)
        out, until = counting.output(), time.monotonic() + 1.0
        counting.settle(lambda: time.monotonic() > until)
        assert counting.output() == out and not stage.engine.flows("resting", 1.0)
        stage.engine.apply(Plan(rests=()))
        counting.settle(lambda: counting.output() > out and stage.engine.flows("resting", 1.0))
        assert counting.verdict().exact


def test_under_a_policy_of_static_levels_a_trigger_pauses_and_changes_nothing(stage: LocalCluster) -> None:
    assert stage.supervisor.endpoint is not None
    remote = RemoteEngine(stage.supervisor.endpoint.path)
    priorities = priorities_of(stage.supervisor)
    with stage.query("static") as counting:
        try:
            assert remote.apply(Plan(heeds_triggers=False)).ok
            stage.supervisor.steered_s = time.monotonic()
            priorities.trigger("static", True)
            with pytest.raises(BadInput, match="a trigger would change nothing"):
                remote.ask("priority", {"do": "trigger", "topology": "static", "on": True})
            priorities.turn()
            assert priorities.manager.levels()["static"] == 2 and not stage.engine.gates.paused
            remote.apply(Plan(heeds_triggers=True))
            priorities.trigger("static", True)
            assert "static" in stage.engine.gates.paused
            counting.settle(lambda: priorities.manager.state.of("static").phase is PriorityPhase.STEADY)
        finally:
            stage.supervisor.steered_s = None
        assert counting.verdict().exact
    remote.close()


@pytest.mark.slow  # cuts that can wait do wait: it takes minutes until the placement is what dps wants
def test_a_trigger_moves_a_node_from_one_topology_to_the_other(
    stage: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two topologies that desire two of three nodes each, steered by dps; the command line turns a trigger on."""
    for name in ("event", "archive"):
        stage.engine.declare(name, QueryOptions(desired_nodes=2))
    manager = priorities_of(stage.supervisor).manager

    def nodes() -> dict[str, set[str]]:
        placement = stage.engine.glance().placement
        return {n: {s.node for s in placement.of_topology(n).slots.values()} for n in ("archive", "event")}

    with stage.query("archive") as archive, stage.query("event") as event:
        with stage.steered("dps", cycle_s=2.0, options={"mode": "cut"}):
            event.settle(lambda: sorted(map(len, nodes().values())) == [1, 2], 240.0)
            assert not nodes()["archive"] & nodes()["event"], "nodes are not shared"
            (poor,) = (name for name, mine in nodes().items() if len(mine) == 1)
            assert main(["priority", "trigger", poor, "on", "--driver", "barograph stage"]) == 0
            capsys.readouterr()
            event.settle(lambda: bool(manager.passed) and manager.passed[-1][2] is PriorityPhase.STEADY)
            assert [(name, phase) for _, name, phase in manager.passed] == [
                (poor, p)
                for p in (
                    PriorityPhase.DRAINING,
                    PriorityPhase.RESCHEDULING,
                    PriorityPhase.RESUMING,
                    PriorityPhase.STEADY,
                )
            ]
            event.settle(lambda: len(nodes()[poor]) == 2 and not nodes()["archive"] & nodes()["event"], 240.0)
            assert main(["priority", "list", "--format", "json"]) == 0
            rows = {r["topology"]: (r["level"], r["trigger"]) for r in json.loads(capsys.readouterr().out)}
            assert rows[poor] == (1, True) and {rows[n] for n in rows if n != poor} == {(2, False)}
            out = event.output(), archive.output()
            event.settle(lambda: event.output() > out[0] and archive.output() > out[1])
        assert event.verdict().exact
        assert archive.verdict().exact
