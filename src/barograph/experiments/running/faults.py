"""Faults that a user orders for a run: an executor, a node or the broker is killed with SIGKILL, or started.

A killed node or broker is started again at once, unless a later action of the run is to start it.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from barograph.config.written.actions import Action, Fault
from barograph.engines.spark.cluster import runs
from barograph.engines.spark.cluster.node_keeper import order_down, order_up
from barograph.engines.spark.cluster.node_status import kill_executor, status_of
from barograph.engines.spark.cluster.processes import kill_marked
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.interfaces import ArrangedQueries
from barograph.kafka import Broker
from barograph.model import BadInput

_UP_S = 60.0


@dataclass(frozen=True, slots=True)
class Killable:
    """What of a run can be killed. run: its cluster; None of one that is not embedded. broker: None if it has none
    of its own."""

    run: Run | None
    broker: Broker | None = None


def inject(action: Action, killable: Killable, engine: ArrangedQueries, all_actions: Iterable[Action]) -> str:
    """Cause the fault and return what was done, as a sentence. BadInput where there is nothing to kill."""
    run = killable.run
    if action.fault in (Fault.KILL_BROKER, Fault.START_BROKER):
        return _broker(action, killable.broker, all_actions)
    assert action.fault is not None and action.slot is not None
    if run is None:
        raise BadInput("processes of this cluster cannot be ended from here")
    node = action.slot.node
    if action.fault is Fault.KILL_EXECUTOR:
        worker = next((w for w in engine.workers() if w.slot == action.slot), None)
        if worker is None:
            raise BadInput(f"no executor is alive in slot {action.slot}")
        return f"killed executor {kill_executor(run, node, worker.executor)} on {node}"
    if action.fault is Fault.KILL_NODE:
        if any(a.fault is Fault.START_NODE and a.slot == action.slot and a.at_s > action.at_s for a in all_actions):
            order_down(run, node)
        kill_marked(run.run_id, node)
        return f"killed {node} with all its executors"
    order_up(run, node)
    deadline = time.monotonic() + _UP_S
    while not _is_alive(run, node):
        if time.monotonic() > deadline:
            raise BadInput(f"{node} did not come up within {_UP_S:g} s")
        time.sleep(0.1)
    return f"started {node}"


def _broker(action: Action, broker: Broker | None, all_actions: Iterable[Action]) -> str:
    if broker is None:
        raise BadInput("this run has started no broker")
    if action.fault is Fault.START_BROKER:
        broker.start()
        return "started the broker"
    broker.kill()
    if any(a.fault is Fault.START_BROKER and a.at_s > action.at_s for a in all_actions):
        return "killed the broker"
    broker.start()
    return "killed the broker and started it again"


def _is_alive(run: Run, node: str) -> bool:
    now = runs.read(run.folder)  # the keeper records each start of a node
    return now is not None and any(n.name == node and n.alive for n in status_of(now))
