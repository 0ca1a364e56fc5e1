"""Kill anything, at any moment: nothing is lost, nothing is counted twice, rows flow again."""

import time
from collections.abc import Iterator

import pytest

from barograph.engines.spark.nodes import kill_executor
from barograph.engines.spark.supervise import Supervised
from barograph.experiments.stage import Counting, Stage, open_stage

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with open_stage() as opened:
        yield opened


def node_of(stage: Stage, counting: Counting, instance: str) -> tuple[str, str]:
    """The node and the executor an instance runs on."""
    executor = counting.executors()[instance]
    slots = {w.executor: w.slot for w in stage.engine.observe().workers}
    return slots[executor].node, executor


def await_flow(counting: Counting, restarts: int) -> None:
    """Until the query has died and come back so often, and rows come out again."""
    query = counting.query
    assert isinstance(query, Supervised)
    counting.settle(lambda: len(query.restarts) >= restarts)
    before = counting.output()
    counting.settle(lambda: counting.output() > before + 1000)


def await_all_executors(stage: Stage) -> None:
    """The cluster brings a lost executor back by itself."""
    deadline = time.monotonic() + 60
    while len(stage.engine.living()[0]) < stage.cluster.settings.nodes:
        assert time.monotonic() < deadline, "the lost executor did not come back"
        time.sleep(0.1)


def test_a_killed_executor(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    with stage.wordcount(supervised=True) as counting:
        query = counting.query
        assert isinstance(query, Supervised)
        identity, run = query.id, query.runId
        node, executor = node_of(stage, counting, "count/1")
        started = time.monotonic()
        kill_executor(stage.cluster.run, node, executor)
        await_flow(counting, 1)
        with capsys.disabled():
            print(f"\nflows again {time.monotonic() - started:.2f} s after the kill; {query.restarts}")  # noqa: T201  # the time is for people, not a bar
        (restart,) = query.restarts
        assert restart.cause == f"lost executor {executor} on {node}"
        assert restart.rows.read > 0
        assert query.id == identity
        assert query.runId != run
        assert query.isActive
        assert query.exception() is None
        assert executor not in counting.executors().values()
        verdict = counting.verdict()
        assert verdict.exact, verdict
        assert not query.isActive
    await_all_executors(stage)
