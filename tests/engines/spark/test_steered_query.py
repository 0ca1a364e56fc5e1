"""A user's own query under ``barograph.start``: steered under a load that rises, held by freeze, only advised."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.polling import until

import barograph
from barograph.cli.main import main
from barograph.cli.steering.decisions import line_of
from barograph.control.recorded_decisions import RecordedDecisions
from barograph.engines.spark.driver import application
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.folders import STATE_VARIABLE
from barograph.engines.spark.query.checkpoint import committed_offsets
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.session import real_time
from barograph.experiments.running.warm_up import require_alive
from barograph.experiments.verdict import judge
from barograph.history.read import rows
from barograph.model import Load, Plan
from barograph.priority.service import serve
from barograph.testing.local_cluster import LINES, OpenSession
from barograph.workloads.replay import Replay
from barograph.workloads.wordcount import WORKLOAD

pytestmark = [pytest.mark.spark, pytest.mark.limit(900)]
RISING = "ramp 0s=40 20s=40 25s=300 3600s=300"
BUSY_US = {"split": 5000}  # 300 rows a second need one and a half cores: more than two instances on these nodes have
INSTANCES = {"source": 1, "split": 2, "count": 2}  # one instance would be a global grouping, which cannot be scaled
# On a busy machine figures come late, and whether a change helped says little.
OPTIONS = {"nodes.release-after": "never", "guards.stale": "never", "guards.probation": "1h"}


class UserQuery:
    """A query that a program starts as a writer, on the shared cluster."""

    def __init__(self, session: OpenSession, folder: Path, **steering: Any) -> None:
        self.spark, self.checkpoint, self.history = session.spark, folder / "checkpoint", folder / "history"
        self.inputs = WORKLOAD.inputs(Replay(Load.parse(RISING).schedule(3600.0), lines=LINES), INSTANCES)
        writer = WORKLOAD.query(self.spark, self.inputs, INSTANCES, BUSY_US).queryName("words")
        writer = real_time(writer.option("checkpointLocation", str(self.checkpoint)), 60.0)
        self.query: Supervised = barograph.start(
            writer, policy="adaptive", history=str(self.history), options=OPTIONS, **steering
        )
        self.supervisor: Supervisor = application.supervisor_of_session(serve)

    def instances(self) -> dict[str, int]:
        require_alive(self.query)
        (found,) = (t for t in self.supervisor.observe("test").topologies if t.name == "words")
        return {o.name: o.parallelism for o in found.operators}

    def recorded(self) -> list[dict[str, Any]]:
        return list(rows(self.history)) if self.history.is_dir() and any(self.history.glob("cycle*")) else []

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> None:
        """Until an entry of the history is so."""

        def met() -> bool:
            require_alive(self.query)
            return any(condition(row) for row in self.recorded() if row["kind"] == "cycle")

        try:
            until(met, 300.0, look_s=1.0)
        except AssertionError:
            told = "\n".join(line_of(decision, "text") for decision in RecordedDecisions(self.history).new())
            pytest.fail(f"it was not decided in time:\n{told}")

    def verdict(self) -> None:
        """Commit what was read, stop, and compare the result with what the inputs contained."""
        assert self.supervisor.engine.apply(Plan(cuts=("words",))).ok
        self.query.stop()
        due = WORKLOAD.due(self.spark, self.inputs, committed_offsets(self.checkpoint))
        assert due.rows > 0
        found = judge(due, WORKLOAD.counted(self.spark, str(self.checkpoint)))
        assert found.exact, str(found)


@contextmanager
def user_query(session: OpenSession, state: Path, **steering: Any) -> Iterator[UserQuery]:
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(prefix="barograph-test-", ignore_cleanup_errors=True) as name,
    ):
        patch.setenv(STATE_VARIABLE, str(state))
        patch.setattr(application, "_present", None)
        started = UserQuery(session, Path(name), **steering)
        try:
            yield started
        finally:
            started.supervisor.close()
            session._forget_orders(started.supervisor.engine)


def grows(row: dict[str, Any]) -> bool:
    return any(r["operator"] == "split" and r["after"] > r["before"] for r in row["rescales"] or ())


@pytest.mark.slow
def test_freeze_holds_a_steered_query_and_thaw_lets_it_scale(
    shared_session: OpenSession, shared_state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with user_query(shared_session, shared_state, mode="act") as user:
        pid = str(user.supervisor.status()["pid"])
        command = [sys.executable, "-u", "-m", "barograph.cli.main", "decisions", pid, "--follow"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follow:
            assert follow.stdout is not None
            assert main(["freeze", pid]) == 0
            user.until(lambda row: grows(row) and any(r["code"] == "frozen" for r in row["refused"] or ()))
            assert user.instances() == INSTANCES, "frozen, nothing is changed"
            assert main(["steer", pid, "--act"]) == 2, "a second controller that acts is refused"
            assert main(["thaw", pid]) == 0
            user.until(lambda row: grows(row) and row["done"] is not None and not row["refused"])
            until(lambda: user.instances()["split"] > 2, 60.0, look_s=0.5)
            for line in follow.stdout:
                if "rescale words/split from 2 to" in line and line.endswith("applied\n"):
                    break
            else:
                pytest.fail("the decision was not followed")
            user.verdict()
            user.supervisor.close()
            assert follow.wait(60) == 0, "it ends with the driver"
    told = capsys.readouterr()
    assert f"is frozen: nothing is changed until 'barograph thaw {pid}'" in told.out
    assert "is no longer frozen: policy adaptive acts on it again" in told.out
    assert "already acts on this driver: end that one first" in told.err


def test_advice_is_recorded_and_nothing_is_changed(shared_session: OpenSession, shared_state: Path) -> None:
    with user_query(shared_session, shared_state, mode="advise") as user:
        user.until(lambda row: bool(user.query.await_up(0.0)) and row["at_s"] is not None)
        before = dict(user.supervisor.observe("test").placement.slots)
        user.until(grows)
        cycles = [row for row in user.recorded() if row["kind"] == "cycle"]
        assert cycles and all(row["done"] is None for row in cycles)
        assert user.instances() == INSTANCES
        assert dict(user.supervisor.observe("test").placement.slots) == before
        assert user.supervisor.engine.pace.wanted_s == {} and user.supervisor.bounds.most_s == {}
        assert user.supervisor.steered_s is None
        user.verdict()
