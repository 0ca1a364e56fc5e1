"""Actions of one second share one plan; faults do not wait for plans; outcomes are in the journal."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from barograph.config.written.actions import parse_action
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.experiments.report import ActionReport
from barograph.experiments.run_settings import RunSettings
from barograph.experiments.running import carry_out
from barograph.experiments.running.carry_out import ActionThreads
from barograph.experiments.running.faults import Killable
from barograph.experiments.running.journal import Journal
from barograph.model import BadInput, Load, MigrationMode, Outcome, Placement, Plan
from barograph.workloads.wordcount import WORKLOAD


class FakeSupervisor:
    """Accepts every plan and keeps it."""

    def __init__(self) -> None:
        self.engine = self
        self.plans: list[Plan] = []

    def apply(self, plan: Plan) -> Outcome:
        self.plans.append(plan)
        return Outcome(order_to_commit_s=0.5)

    def orders(self, _: str) -> tuple[Placement, dict[str, int]]:
        return Placement(), {}


def actions_of(
    *texts: str, migration: MigrationMode = MigrationMode.CUT, journal: Journal | None = None
) -> tuple[ActionThreads, FakeSupervisor, Journal]:
    supervisor, journal = FakeSupervisor(), journal or Journal()
    actions = tuple(parse_action(t, WORKLOAD.name) for t in texts)
    settings = RunSettings(WORKLOAD, Load.parse("constant 1"), actions=actions, migration=migration)
    found = ActionThreads(settings, cast(Supervisor, supervisor), Killable(None), journal, lambda: 1.0)
    return found, supervisor, journal


@pytest.fixture
def injected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    done: list[str] = []

    def inject(action: Any, *_: object) -> str:
        if "node-9" in action.text:
            raise BadInput("no executor is alive in slot node-9")
        done.append(action.text)
        return f"did {action.text}"

    monkeypatch.setattr(carry_out, "inject", cast(Callable[..., str], inject))
    return done


def test_changes_of_one_second_are_one_plan() -> None:
    threads, supervisor, journal = actions_of("5:move count/1=node-2", "5:scale split=4", "9:cut")
    with threads:
        threads.start_due(4.9)
        assert threads.next_s() == 5.0
        threads.start_due(5.0)
        assert threads.next_s() == 9.0
    first, second = supervisor.plans
    assert (len(first.placement), len(first.rescales), second.cuts) == (1, 1, (WORKLOAD.name,))
    assert threads.next_s() == float("inf")
    assert [(r.action, r.ok) for r, _ in journal.actions()] == [
        ("move count/1=node-2", True), ("scale split=4", True), ("cut", True),
    ]  # fmt: skip


def test_faults_are_injected_and_their_failures_reported(injected: list[str]) -> None:
    threads, supervisor, journal = actions_of("2:kill executor@node-1", "3:kill executor@node-9", "4:kill driver")
    with threads:
        threads.start_due(2.0)
    assert (injected, supervisor.plans) == (["kill executor@node-1"], [])
    reports = {r.action: (r.ok, r.reason) for r, _ in journal.actions()}
    assert reports == {
        "kill executor@node-1": (True, ""),
        "kill executor@node-9": (False, "no executor is alive in slot node-9"),
    }


def test_what_an_earlier_driver_has_done_is_not_done_again() -> None:
    journal = Journal()
    journal.earlier.actions.append((ActionReport(5.0, "cut", True, "", None, None, ()), (5.0, 5.1)))
    threads, supervisor, _ = actions_of("5:cut", "6:cut", journal=journal)
    with threads:
        assert threads.next_s() == 6.0
    assert len(supervisor.plans) == 1


def test_an_application_that_ends_leaves_later_actions_to_the_next_one() -> None:
    threads, supervisor, _ = actions_of("5:cut", "9:cut", migration=MigrationMode.RESTART_APP)
    with threads:
        threads.start_due(5.0)
        assert threads.leaving.wait(10)
    assert [p.mode for p in supervisor.plans] == [MigrationMode.BOUNDARY]
    assert threads.next_s() == 9.0
