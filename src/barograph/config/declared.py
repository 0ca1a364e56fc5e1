"""All options by name, in the order in which they are shown. Nothing else has a default of its own for one of them."""

from typing import Any

from barograph.config.for_commands import KEEPING, LOGS
from barograph.config.for_controller import GUARDS, STEERING
from barograph.config.for_queries import QUERIES
from barograph.config.for_runs import CLUSTERS, RUNS
from barograph.config.option import Option

OPTIONS: dict[str, Option] = {o.name: o for o in (*STEERING, *GUARDS, *RUNS, *CLUSTERS, *QUERIES, *KEEPING, *LOGS)}


def default(name: str) -> Any:
    """The default of an option, for a field of a value that holds it."""
    return OPTIONS[name].default
