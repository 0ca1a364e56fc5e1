"""A program for the driver's host: a supervised word count on executors of other hosts.

It takes the session's settings as JSON, and prints what it sees twice a second, one line of JSON each. A line on its
standard input is an order, as JSON: {"gather": NODE} moves all instances to a node, {"release": [NODE]} and {"fetch":
[NODE]} change nodes; the answer is ``said`` in each line from then on. After "end" comes the verdict.
"""

import json
import queue
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, cast

from barograph.engines.spark.cluster.embedded import EmbeddedCluster
from barograph.engines.spark.conf import plugin_settings
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.session import await_executors, open_session
from barograph.logs import set_up
from barograph.model import Placement, Plan, Slot
from barograph.testing.hosts.host import SHARED
from barograph.testing.local_cluster import LocalCluster, RunningQuery


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def read_lines(orders: "queue.Queue[str]") -> None:
    for line in sys.stdin:
        orders.put(line.strip())


def carry_out(order: dict[str, Any], counting: RunningQuery) -> list[str]:
    supervisor = counting.cluster.supervisor
    if "gather" not in order:
        return supervisor.keep_nodes(**order)
    instances = supervisor.observe("test").topology(counting.name).instances()
    outcome = supervisor.apply(Plan(Placement(dict.fromkeys(instances, Slot(order["gather"])))))
    return [*outcome.done, *(r.reason for r in outcome.refused)]


def main(conf: dict[str, str]) -> None:
    tempfile.tempdir = str(SHARED)  # the checkpoint is where every host sees it
    spark = open_session("counting", plugin_settings(), conf, log=Path("/tmp/jvm.log"))
    await_executors(spark, int(conf["spark.executor.instances"]))
    supervisor = Supervisor(spark)
    supervisor.serve()
    stage = LocalCluster(cast("EmbeddedCluster", None), spark, supervisor.engine, supervisor)
    orders: queue.Queue[str] = queue.Queue()
    threading.Thread(target=read_lines, args=(orders,), daemon=True).start()
    try:
        with stage.query(supervised=True, epoch_s=5.0) as counting:
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
                    slots={w.executor: str(w.slot) for w in now.workers},
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
    main(json.loads(sys.argv[1]))
