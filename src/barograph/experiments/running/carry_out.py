"""Carries out the actions of a run at their seconds, on threads of their own, so that the view goes on meanwhile.

Plans have one thread and faults another, so that a fault can happen while a plan is being carried out. Outcomes go to
the journal. It decides nothing.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from types import TracebackType

from barograph.config.written.actions import Action, Fault
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.interfaces import ArrangedQueries
from barograph.experiments.report import ActionReport
from barograph.experiments.run_settings import RunSettings
from barograph.experiments.running.actions import plan_of
from barograph.experiments.running.faults import Killable, inject
from barograph.experiments.running.journal import Journal
from barograph.model import BadInput, MigrationMode, Outcome


class ActionThreads:
    """Of one run. load_s: seconds since the load's start. leaving: set when the application is to end and another one
    is to continue from its checkpoint."""

    def __init__(
        self,
        settings: RunSettings,
        supervisor: Supervisor,
        killable: Killable,
        journal: Journal,
        load_s: Callable[[], float],
    ) -> None:
        self._settings, self._supervisor, self._killable = settings, supervisor, killable
        self._engine: ArrangedQueries = supervisor.engine
        self._journal, self._load_s = journal, load_s
        self.leaving = threading.Event()
        ordered = sorted(settings.actions, key=lambda a: a.at_s)
        due = [a for a in ordered if (a.at_s, a.text) not in journal.earlier.done]
        self._pending = [list(group) for _, group in groupby(due, lambda a: a.at_s)]
        self._started: list[Future[None]] = []
        self._plans, self._faults = ThreadPoolExecutor(1, "plans"), ThreadPoolExecutor(1, "faults")

    def __enter__(self) -> "ActionThreads":
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """At the end of the load: start what is left, unless the application ends, and wait for all of it."""
        if kind is None:
            if not self.leaving.is_set():
                self.start_due(float("inf"))
            for started in self._started:
                started.result()
        self._plans.shutdown()
        self._faults.shutdown()

    def next_s(self) -> float:
        """The second of the next action; infinity where none is left."""
        return self._pending[0][0].at_s if self._pending else float("inf")

    def start_due(self, now_s: float) -> None:
        while self._pending and self._pending[0][0].at_s <= now_s:
            group = self._pending.pop(0)
            if plans := [a for a in group if a.fault is None]:
                self._started.append(self._plans.submit(self._apply, plans))
            faults = [a for a in group if a.fault not in (None, Fault.KILL_DRIVER)]
            self._started.extend(self._faults.submit(self._inject, a) for a in faults)

    def note_orders(self) -> None:
        """A driver that takes over begins with what was last ordered, by an action or by a controller."""
        placement, parallelism = self._engine.orders(self._settings.workload.name)
        self._journal.ordered(parallelism, placement)

    def _apply(self, actions: list[Action]) -> None:
        ordered_s = self._load_s()
        plan = plan_of(actions, self._settings.workload.name, self._settings.migration)
        leaves = plan.mode is MigrationMode.RESTART_APP
        # What the next application begins with is ordered from this one, as if for its next epoch.
        outcome: Outcome = self._supervisor.apply(replace(plan, mode=MigrationMode.BOUNDARY) if leaves else plan)
        reason = "; ".join(f"{r.what}: {r.reason}" for r in outcome.refused)
        self.note_orders()
        for action in actions:
            report = ActionReport(
                action.at_s, action.text, outcome.ok, reason, outcome.order_to_commit_s, None, outcome.done,
                outcome.moves, outcome.rescales,
            )  # fmt: skip
            self._journal.acted(report, (ordered_s, self._load_s()))
        if leaves and outcome.ok:
            self.leaving.set()

    def _inject(self, action: Action) -> None:
        started_s = self._load_s()
        did: tuple[str, ...] = ()
        reason = ""
        try:
            did = (inject(action, self._killable, self._engine, self._settings.actions),)
        except BadInput as error:
            reason = str(error)
        report = ActionReport(action.at_s, action.text, not reason, reason, None, None, did)
        self._journal.acted(report, (started_s, self._load_s()))
