"""Every workload by its name: those below, and those that installed packages offer as entry points.

Names are known without importing Spark; a workload's module is imported when it is asked for.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from barograph.model import BadInput

if TYPE_CHECKING:
    from barograph.workloads.workload import Workload

GROUP = "barograph.workloads"
DEFAULT = "wordcount"
_SHIPPED = {
    "wordcount": "barograph.workloads.wordcount:WORKLOAD",
    "campaigns": "barograph.workloads.campaigns:WORKLOAD",
}


def names() -> tuple[str, ...]:
    """The shipped workloads come first."""
    return tuple(_known())


def require_workload(name: str) -> None:
    if name not in _known():
        raise BadInput(f"there is no workload {name!r}; there are {', '.join(names())}")


def workload(name: str = DEFAULT) -> "Workload":
    from barograph.workloads.workload import Workload

    require_workload(name)
    point = _known()[name]
    try:
        found = point.load()
    except (ImportError, AttributeError) as error:
        raise BadInput(f"workload {name!r} cannot be loaded from {point.value}: {error}") from error
    if not isinstance(found, Workload) or found.name != name:
        raise BadInput(f"{point.value} is not a Workload of the name {name!r}")
    return found


@cache
def _known() -> dict[str, EntryPoint]:
    """A package cannot replace a workload that is shipped."""
    shipped = {name: EntryPoint(name, value, GROUP) for name, value in _SHIPPED.items()}
    offered = {point.name: point for point in entry_points(group=GROUP) if point.name not in shipped}
    return shipped | offered
