"""One cycle of the controller, as it is remembered. Stages that need memory read it from here, so they stay pure."""

from dataclasses import dataclass

from barograph.model.decision import Allotment, Demand, Forecast
from barograph.model.plan import Outcome, Plan
from barograph.model.snapshot import Snapshot


@dataclass(frozen=True)
class Cycle:
    """What was seen and what was decided. Stages of the present cycle see the earlier ones, oldest first.

    outcome: what the engine did about the plan; None where the plan was not given to it.
    """

    snapshot: Snapshot
    forecast: Forecast
    demand: Demand
    allotment: Allotment
    plan: Plan
    outcome: Outcome | None = None
