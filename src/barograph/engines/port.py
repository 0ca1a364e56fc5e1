"""The port every engine serves. A policy never knows which engine is behind it."""

from typing import Protocol

from barograph.model import Outcome, Plan, Snapshot


class Engine(Protocol):
    """Eyes and hands. ``tests/contracts/engine_contract.py`` says in code what any implementation must keep."""

    def observe(self) -> Snapshot:
        """The world now, with the metrics since the previous call. Called once a cycle; changes nothing."""
        ...

    def apply(self, plan: Plan) -> Outcome:
        """Make the plan so and say what was done.

        The plan is first checked against the world as it is now; if anything in it cannot be, the whole plan is
        refused with a reason for each, and nothing changes. Applying a plan that holds already does nothing.
        Returns when what was done is in effect, or (mode ``boundary``) when it is sure to be from the next epoch on.
        """
        ...
