"""A program for the driver's host: a supervised word count on executors of other hosts.

It takes the session's settings as JSON, prints what it sees twice a second, one line of JSON each, and after a line on
its standard input the verdict.
"""

import json
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
from barograph.testing.hosts.host import SHARED
from barograph.testing.local_cluster import LocalCluster


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def await_line(told: threading.Event) -> None:
    sys.stdin.readline()
    told.set()


def main(conf: dict[str, str]) -> None:
    tempfile.tempdir = str(SHARED)  # the checkpoint is where every host sees it
    spark = open_session("counting", plugin_settings(), conf, log=Path("/tmp/jvm.log"))
    await_executors(spark, int(conf["spark.executor.instances"]))
    supervisor = Supervisor(spark)
    stage = LocalCluster(cast("EmbeddedCluster", None), spark, supervisor.engine, supervisor)
    told = threading.Event()
    threading.Thread(target=await_line, args=(told,), daemon=True).start()
    try:
        with stage.query(supervised=True, epoch_s=5.0) as counting:
            query = counting.query
            assert isinstance(query, Supervised)
            while not told.is_set():
                stage.engine.refresh()
                say(
                    at_s=time.time(), output=counting.output(), executors=counting.executors(), doing=query.doing,
                    restarts=[r.cause for r in query.restarts], living=stage.engine.living()[0],
                )  # fmt: skip
                told.wait(0.5)
            say(exact=counting.verdict().exact, restarts=[r.cause for r in query.restarts])
    finally:
        supervisor.close()
        spark.stop()


if __name__ == "__main__":
    set_up("info")
    main(json.loads(sys.argv[1]))
