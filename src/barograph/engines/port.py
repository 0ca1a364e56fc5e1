"""The interface of every engine. A policy does not know which engine is behind it."""

from typing import Protocol

from barograph.model import Outcome, Plan, Snapshot

CONTROLLER = "controller"  # the observer that steers, where it does not give itself another name


class Engine(Protocol):
    """Observes the cluster and applies plans. ``tests/contracts/engine_contract.py`` tests every implementation."""

    def observe(self, observer: str = CONTROLLER) -> Snapshot:
        """The cluster now, with the metrics since this observer's previous call. Any number of observers may look at
        any time: each has its own name, none takes anything from another, and nothing that runs changes."""
        ...

    def apply(self, plan: Plan) -> Outcome:
        """Apply the plan and say what was done.

        The plan is first checked against the cluster as it is now. If any part of it is impossible, the whole plan is
        refused with a reason for each such part, and nothing changes. What the engine can never do is left out, with a
        reason, and the rest is applied. A topology whose restart fails goes on as it was; the others are changed all
        the same. A plan that is in effect already does nothing.
        Returns when what was done is in effect, or (mode ``boundary``) when it is sure to be from the next epoch on.
        """
        ...
