"""Faults that a user orders for a run: an executor or a node is killed with SIGKILL, or a node is started.

The cluster's keeper starts a killed node again at once, unless a later action of the run is to start it.
"""

import time
from collections.abc import Iterable

from barograph.engines.spark.cluster import runs
from barograph.engines.spark.cluster.node_keeper import order_down, order_up
from barograph.engines.spark.cluster.node_status import kill_executor, status_of
from barograph.engines.spark.cluster.processes import kill_marked
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.engine import SparkEngine
from barograph.experiments.running.actions import Action, Fault
from barograph.model import BadInput

_UP_S = 60.0


def inject(action: Action, run: Run | None, engine: SparkEngine, all_actions: Iterable[Action]) -> str:
    """Cause the fault and return what was done, as a sentence. BadInput where there is nothing to kill. run: None of a
    cluster that is not embedded."""
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


def _is_alive(run: Run, node: str) -> bool:
    now = runs.read(run.folder)  # the keeper records each start of a node
    return now is not None and any(n.name == node and n.alive for n in status_of(now))
