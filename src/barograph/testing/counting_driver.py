"""A driver of its own with a supervised word count on a given checkpoint; it takes orders on its standard input.

An order is a line of JSON: its name and its arguments. The answer is a line of JSON; "error" says what went wrong.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.query.checkpoint import checkpoint_of, committed_offsets, last_committed_epoch
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.session import open_session, real_time
from barograph.experiments.verdict import judge
from barograph.model import Load, Plan, Rescale
from barograph.testing.local_cluster import with_testing_jar
from barograph.workloads.lines import LineShape
from barograph.workloads.replay import Replay
from barograph.workloads.wordcount import WORKLOAD

PARALLELISM = {"source": 1, "split": 1, "count": 2}
EPOCH_S = 60.0  # epochs end by cuts only
UP_S = 400.0


class CountingDriver:
    """commit_s: how long the end of an epoch is waited for."""

    def __init__(
        self, checkpoint: Path, name: str, log: Path, patience_s: float, hooked: bool, commit_s: float
    ) -> None:
        more = {"spark.barograph.leasePatienceMs": str(round(patience_s * 1000))}
        if hooked:
            more["spark.sql.streaming.checkpointFileManagerClass"] = "org.apache.spark.barograph.testing.HookedFiles"
        local = {"spark.master": "local[8]", "spark.driver.host": "127.0.0.1"}
        self.spark = open_session(name, with_testing_jar(), local, more, log=log)
        self.checkpoint = checkpoint
        self.supervisor = Supervisor(self.spark)
        self.supervisor.engine.commit_timeout_s = commit_s
        self.inputs = WORKLOAD.inputs(
            Replay(Load.parse("constant 200").schedule(1.0), lines=LineShape(seed=5)), PARALLELISM
        )
        self.query: Supervised | None = None
        jvm: Any = self.spark._jvm
        self.hooks = jvm.org.apache.spark.barograph.testing.FileHooks

    def start(self) -> dict[str, Any]:
        def build() -> DataStreamWriter:
            writer = WORKLOAD.query(self.spark, self.inputs, PARALLELISM).queryName("wordcount")
            return real_time(writer.option("checkpointLocation", str(self.checkpoint)), EPOCH_S)

        self.query = self.supervisor.start(build)
        if not self.query.await_up(UP_S):
            raise TimeoutError(f"the query is not up: {self.query.doing}")
        return {"root": checkpoint_of(self.query.present), "pid": self.jvm_pid()}

    def jvm_pid(self) -> int:
        jvm: Any = self.spark._jvm
        return int(jvm.java.lang.ProcessHandle.current().pid())

    def flow(self, rows: int) -> int:
        """Wait until so many more rows were put out."""
        engine, deadline = self.supervisor.engine, time.monotonic() + UP_S
        engine.refresh()
        before = engine.output_rows("wordcount")
        while (more := engine.output_rows("wordcount") - before) < rows:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{more} of {rows} rows were put out")
            time.sleep(0.05)
            engine.refresh()
        return more

    def cut(self) -> None:
        outcome = self.supervisor.apply(Plan(cuts=("wordcount",)))
        if not outcome.ok:
            raise RuntimeError(str(outcome.refused))

    def commit(self) -> int:
        """Cut, and wait until one more epoch is committed. Returns its number."""
        before = last_committed_epoch(self.checkpoint)
        self.cut()
        deadline = time.monotonic() + UP_S
        while (now := last_committed_epoch(self.checkpoint)) == before or now is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no epoch was committed after {before}")
            time.sleep(0.05)
        return now

    def rescale(self) -> None:
        """To three instances of the stateful operator if it has two, and back."""
        outcome = self.supervisor.apply(Plan(rescales=(Rescale("wordcount", "count", 5 - self._instances()),)))
        if not outcome.ok:
            raise RuntimeError(str(outcome.refused))

    def undo(self) -> None:
        """Stop the query, let a repartition of its state break off immediately before its commit, and take it back."""
        count = self._instances()
        self.stop()
        last, engine, checkpoint = last_committed_epoch(self.checkpoint), self.supervisor.engine, str(self.checkpoint)
        assert last is not None
        self.hooks.failBeforeMove(f"/commits/{last + 1}")
        try:
            why = engine.repartition(checkpoint, 5 - count)
        finally:
            self.hooks.failBeforeMove("")
        if "on purpose" not in why or engine.unfinished_repartition(checkpoint) != 5 - count:
            raise RuntimeError(f"the repartition did not break off before its commit: {why or 'it was done'}")
        if why := engine.undo_repartition(checkpoint) or self._unfinished(checkpoint):
            raise RuntimeError(why)

    def _unfinished(self, checkpoint: str) -> str:
        count = self.supervisor.engine.unfinished_repartition(checkpoint)
        return f"a repartition to {count} instances is still begun" if count else ""

    def _instances(self) -> int:
        """Of the stateful operator."""
        epoch = self.supervisor.engine.present("wordcount")
        assert epoch is not None
        return sum(i.operator == "count" for i in epoch.lives)

    def stop(self) -> None:
        assert self.query is not None
        self.query.stop()

    def arm(self, operation: int, log: str) -> None:
        self.hooks.arm(operation, log)

    def copy_before_each(self, to: str, log: str) -> None:
        """Copy the checkpoint to NUMBER in this folder before each operation on its files."""
        self.hooks.copyBeforeEach(str(self.checkpoint), to, log)

    def use(self, checkpoint: str) -> None:
        """The next start is on this checkpoint."""
        self.checkpoint = Path(checkpoint)

    def counted(self) -> int:
        return int(self.hooks.counted())

    def disarm(self) -> int:
        return int(self.hooks.disarm())

    def stop_before_move(self, end: str) -> None:
        self.hooks.stopBeforeMove(end)

    def wait_for_end(self) -> str:
        """What ended the query for good."""
        assert self.query is not None
        try:
            self.query.awaitTermination(UP_S)
        except Exception as error:  # noqa: BLE001  # any of them is the answer
            return f"{type(error).__name__}: {error}"
        return "it runs" if self.query.isActive else "it was stopped"

    def restarts(self) -> int:
        assert self.query is not None
        return len(self.query.restarts)

    def verdict(self) -> dict[str, Any]:
        """Of what is committed; the query is not stopped."""
        due = WORKLOAD.due(self.spark, self.inputs, committed_offsets(self.checkpoint))
        found = judge(due, WORKLOAD.counted(self.spark, str(self.checkpoint)))
        return {"exact": found.exact, "rows": due.rows, "said": str(found)}


def say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    given = json.loads(sys.argv[1])
    driver = CountingDriver(
        Path(given["checkpoint"]), given["name"], Path(given["log"]), given["patience_s"], given["hooked"],
        given["commit_s"],
    )  # fmt: skip
    say({"jvm": driver.jvm_pid()})
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        order: Callable[..., Any] = getattr(driver, name)
        try:
            answer = {"answer": order(*arguments)}
        except Exception as error:  # noqa: BLE001  # the test decides what is wrong
            answer = {"error": f"{type(error).__name__}: {error}"}
        say(answer)


if __name__ == "__main__":
    main()
