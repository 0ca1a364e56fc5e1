"""How one run of a query ended, as the plug-in reports it. A query run lasts from one start of the query to its end."""

from dataclasses import dataclass
from enum import StrEnum

_DIED = "died: "  # followed by the error, in Bridge.scala's answer


class EndKind(StrEnum):
    """stopped: on request. died: by an error."""

    STOPPED = "stopped"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class QueryRunEnd:
    """error: Spark's text, empty if the run was stopped."""

    kind: EndKind
    error: str = ""

    @property
    def died(self) -> bool:
        return self.kind is EndKind.DIED


def read_end(answer: str) -> QueryRunEnd | None:
    """The answer of ``Bridge.awaitEnd``; None while the query runs."""
    if not answer:
        return None
    if answer.startswith(_DIED):
        return QueryRunEnd(EndKind.DIED, answer.removeprefix(_DIED))
    return QueryRunEnd(EndKind.STOPPED)
