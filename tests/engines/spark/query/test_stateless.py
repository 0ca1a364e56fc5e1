"""A query without state, whose executor is killed: no row is lost, and only rows of the open epoch come twice."""

from collections import Counter
from pathlib import Path

import pytest
from tests.polling import until

from barograph.engines.spark.cluster.node_status import kill_executor
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.session import real_time
from barograph.model import Load, Plan
from barograph.testing.local_cluster import LocalCluster
from barograph.workloads.replay import FORMAT, Replay

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("all_executors")]


@pytest.fixture(scope="module", autouse=True)
def own_state() -> None:
    """That of the shared cluster: it is started again in part, which needs its folder."""


@pytest.fixture(scope="module")
def stage(kept_stage: LocalCluster) -> LocalCluster:
    return kept_stage


@pytest.mark.parametrize("logs", ["at once", pytest.param("while planning", marks=pytest.mark.slow)])
def test_a_killed_executor_loses_no_row(stage: LocalCluster, tmp_path: Path, logs: str) -> None:
    name, written, checkpoint = f"stateless {logs}", tmp_path / "rows", tmp_path / "checkpoint"
    replay = Replay(Load.parse("constant 300").schedule(1.0), 2, numbers=True)
    note = f"reflect('org.apache.spark.barograph.testing.RowLog', 'note', '{written}', concat(partition, ' ', k)) as n"
    # Spark writes its logs while it plans the next epoch only if the author asks for it.
    option = {} if logs == "at once" else {"asyncProgressTrackingEnabled": "true"}

    def build():  # type: ignore[no-untyped-def]
        rows = stage.spark.readStream.format(FORMAT).options(**replay.options()).load().repartition(2).selectExpr(note)
        writer = rows.writeStream.queryName(name).outputMode("update").format("noop").options(**option)
        return real_time(writer.option("checkpointLocation", str(checkpoint)), 600.0)

    def up() -> bool:
        stage.engine.refresh()
        epoch = stage.engine.present(name)
        return epoch is not None and epoch.is_up

    def times() -> Counter[tuple[int, int]]:
        lines = [line for file in written.glob("*") for line in file.read_text().splitlines()]
        return Counter((int(p), int(k)) for p, k in (line.split() for line in lines))

    query = stage.supervisor.start(build)
    try:
        until(lambda: up() and len(times()) > 500)
        assert stage.supervisor.apply(Plan(cuts=(name,))).ok
        before = committed_offsets(checkpoint)
        until(lambda: up() and any(k > before[p] + 200 for p, k in times()))
        present = stage.engine.present(name)
        assert present is not None
        victim = next(life.executor for life in present.lives.values())
        node = next(w.slot.node for w in stage.engine.workers() if w.executor == victim)
        kill_executor(stage.cluster.run, node, victim)
        until(lambda: len(query.restarts) >= 1 and up())
        later = len(times())
        until(lambda: len(times()) > later + 300)
        assert stage.supervisor.apply(Plan(cuts=(name,))).ok
    finally:
        query.stop()
    after, seen = committed_offsets(checkpoint), times()
    assert all(a > b for a, b in zip(after, before, strict=True))
    assert [(p, k) for p in range(2) for k in range(after[p]) if (p, k) not in seen] == [], "lost"
    twice = [row for row, n in seen.items() if n > 1]
    assert twice, "the open epoch was not replayed: nothing was tested"
    assert [(p, k) for p, k in twice if k < before[p]] == [], "a committed row came again"
    assert max(seen.values()) <= 1 + len(query.restarts)
