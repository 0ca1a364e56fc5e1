"""A program for the driver's host: a supervised word count on executors of other hosts.

It takes the session's settings as JSON, and prints what it sees twice a second, one line of JSON each. A line on its
standard input is an order, as JSON: {"gather": NODE} moves all instances to a node, {"spread": [NODE, ...]} deals those
of split to nodes, {"release": [NODE]} and {"fetch": [NODE]} change nodes, {"limit": PER CENT, "way": WAY} limits all
instances of split and says how; the answer is ``said`` in each line from then on. After "end" comes the verdict.
With "busy" as second argument the instances of split have more to do than they can.
"""

import json
import queue
import sys
import tempfile
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from barograph.engines.spark.cluster.embedded import EmbeddedCluster
from barograph.engines.spark.conf import plugin_settings
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.session import await_executors, open_session
from barograph.logs import set_up
from barograph.model import Placement, Plan, Slot, Snapshot
from barograph.testing.hosts.host import SHARED
from barograph.testing.local_cluster import LocalCluster, RunningQuery
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT

BUSY = {"source": 1, "split": 3, "count": 2}


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def read_lines(orders: "queue.Queue[str]") -> None:
    for line in sys.stdin:
        orders.put(line.strip())


def carry_out(order: dict[str, Any], counting: RunningQuery) -> list[str]:
    supervisor = counting.cluster.supervisor
    if order.keys() & {"release", "fetch"}:
        kept = supervisor.keep_nodes(**order)
        return [*kept.done, *(f"no {r.what}: {r.reason}" for r in kept.left_out)]
    instances = supervisor.observe("test").topology(counting.name).instances()
    split = [i for i in instances if i.operator == "split"]
    if "gather" in order:
        plan = Plan(Placement(dict.fromkeys(instances, Slot(order["gather"]))))
    elif "spread" in order:
        plan = Plan(Placement({i: Slot(node) for i, node in zip(split, order["spread"], strict=True)}))
    else:
        supervisor.engine.enforce(order["way"])
        plan = Plan(limits_pct=dict.fromkeys(split, float(order["limit"])))
    outcome = supervisor.apply(plan)
    limited = [f"limited to {order['limit']} % by {order['way']}"] if "limit" in order else []
    return [*limited, *outcome.done, *(r.reason for r in outcome.refused)]


def used(now: Snapshot) -> dict[str, float]:
    """CPU seconds of each instance of split since the last look, by its node."""
    rows = {i: now.metrics.row(i) for i in now.metrics.instances if i.operator == "split"}
    return {slot.node: row.cpu_s for i, row in rows.items() if (slot := now.placement.get(i)) is not None}


def main(conf: dict[str, str], busy: bool) -> None:
    tempfile.tempdir = str(SHARED)  # the checkpoint is where every host sees it
    spark = open_session("counting", plugin_settings(), conf, log=Path("/tmp/jvm.log"))
    await_executors(spark, int(conf["spark.executor.instances"]))
    supervisor = Supervisor(spark)
    supervisor.serve()
    stage = LocalCluster(cast("EmbeddedCluster", None), spark, supervisor.engine, supervisor)
    orders: queue.Queue[str] = queue.Queue()
    threading.Thread(target=read_lines, args=(orders,), daemon=True).start()
    try:
        how: dict[str, Any] = {"supervised": True, "epoch_s": 5.0}
        if busy:
            work = replace(WORDCOUNT, query=partial(WORDCOUNT.query, busy_us={"split": 200}))
            how = {"rate": 20_000, "parallelism": BUSY, "workload": work, "supervised": True, "epoch_s": 600.0}
        with stage.query(**how) as counting:
            query = counting.query
            assert isinstance(query, Supervised)
            order, said = "", [""]
            while order != "end":
                if order:
                    said = carry_out(json.loads(order), counting)
                now = stage.engine.observe("looking")
                say(
                    at_s=time.time(), output=counting.output(), executors=counting.executors(), doing=query.doing,
                    restarts=[r.cause for r in query.restarts], living=stage.engine.living()[0], said=said,
                    nodes={n.name: n.slots for n in now.nodes}, asleep=[n.name for n in now.asleep],
                    slots={w.executor: str(w.slot) for w in now.workers}, cycle_s=now.cycle_s, cpu_s=used(now),
                    ways=[(e.enforces, e.enforces_because) for e in stage.engine.live_executors],
                )  # fmt: skip
                try:
                    order = orders.get(timeout=0.5)
                except queue.Empty:
                    order = ""
            say(exact=counting.verdict().exact, restarts=[r.cause for r in query.restarts])
    finally:
        supervisor.close()
        spark.stop()


if __name__ == "__main__":
    set_up("info")
    main(json.loads(sys.argv[1]), "busy" in sys.argv[2:])
