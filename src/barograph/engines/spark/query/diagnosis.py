"""Why a query run died, and whether the query is restarted. Pure: times, texts and executors are arguments.

Distinguished are: a lost machine (restart at once), missing seats (wait for a node), a failed task (restart with a
growing delay), and a bug in the query: Spark refuses to analyse it, or the same failure occurs at the same epoch
several times although no executor was lost. Nothing is started here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from barograph.config import default
from barograph.engines.spark.backoff import doubled_s

_NO_SEATS = "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT"
_LOST = ("ExecutorLostFailure", "ExecutorDeadException", "Executor heartbeat timed out")
# The error of a task that lost its connection to a task that has failed: an effect, never the cause.
_BESIDE = ("closed before termination", "Connection reset", "Broken pipe", "Failed to connect to")
# Names of Java classes and of Spark's error conditions that recur at every restart.
_BUGS = (
    "AnalysisException", "ParseException", "STREAMING_REAL_TIME_MODE", "UNRESOLVED_COLUMN", "IllegalArgumentException",
)  # fmt: skip
_SHORT = 300


class Cause(StrEnum):
    """lost: an executor or node died. seats: too few are left. task: a task failed. beside: the error
    is of a task that lost its connection to a failed task. bug: no restart can help."""

    LOST = "lost"
    SEATS = "seats"
    TASK = "task"
    BESIDE = "beside"
    BUG = "bug"


@dataclass(frozen=True, slots=True)
class Death:
    """Of one query run. at_s: of any one clock. epoch: the open one. signature: equal for equal failures."""

    at_s: float
    cause: Cause
    text: str
    epoch: int | None
    signature: str


@dataclass(frozen=True, slots=True)
class RestartLimits:
    """same_failures: the same failure this many times at one epoch is a bug. in_a_row: the query is given up after this
    many deaths without a committed epoch between them. The first death in a row is followed by a restart at once; the
    wait is first_wait_s after the second and doubles up to longest_wait_s. patience_s: the longest wait for seats."""

    same_failures: int = default("restart.same-failures")
    in_a_row: int = default("restart.in-a-row")
    first_wait_s: float = default("restart.first-wait")
    longest_wait_s: float = default("restart.longest-wait")
    patience_s: float = default("restart.patience")


def diagnose(text: str, at_s: float, epoch: int | None, lost: Sequence[str], starting: bool = False) -> Death:
    """lost: executors that the run began with and that do not answer now. starting: it failed before it ran."""
    said = _first_words(text)
    if lost:
        return Death(at_s, Cause.LOST, f"lost {', '.join(lost)}", epoch, "")
    if _NO_SEATS in text:
        return Death(at_s, Cause.SEATS, "too few seats for all instances", epoch, "")
    if any(sign in text for sign in _LOST):
        return Death(at_s, Cause.LOST, f"lost an executor: {said}", epoch, "")
    if starting and any(sign in text for sign in _BUGS):
        return Death(at_s, Cause.BUG, f"Spark refuses the query: {said}", epoch, signature(text))
    if any(sign in said for sign in _BESIDE):
        return Death(at_s, Cause.BESIDE, f"a connected task failed: {said}", epoch, "")
    return Death(at_s, Cause.TASK, f"a task failed: {said}", epoch, signature(text))


class GiveUpCode(StrEnum):
    """refused: by Spark, as it is written. same-failure: again and again at one epoch. no-progress: too many deaths
    without a committed epoch. application-ended: there is no Spark to restart it in."""

    REFUSED = "refused"
    SAME_FAILURE = "same-failure"
    NO_PROGRESS = "no-progress"
    APPLICATION_ENDED = "application-ended"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Why a query is not restarted. text: for people to read."""

    code: GiveUpCode
    text: str

    @property
    def is_bug(self) -> bool:
        """Whether the query is at fault, not the cluster."""
        return self.code in (GiveUpCode.REFUSED, GiveUpCode.SAME_FAILURE)


def give_up(deaths: Sequence[Death], limits: RestartLimits) -> GivenUp | None:
    """Why the query is not restarted; None if it is. deaths: those since the last committed epoch, the latest last."""
    last = deaths[-1]
    if last.cause is Cause.BUG:
        return GivenUp(GiveUpCode.REFUSED, f"a bug in the query: {last.text}")
    # A lost machine may have caused the failures before it, so only failures after it count. The error of a
    # connected task hides the failure itself, so it is skipped.
    same = 0
    for death in reversed(deaths):
        if death.cause is Cause.BESIDE:
            continue
        if (death.cause, death.signature, death.epoch) != (Cause.TASK, last.signature, last.epoch):
            break
        same += 1
    if same >= limits.same_failures:
        where = "" if last.epoch is None else f" at epoch {last.epoch}"
        text = f"a bug in the query: {same} times the same failure{where} with no executor lost: {last.text}"
        return GivenUp(GiveUpCode.SAME_FAILURE, text)
    if len(deaths) >= limits.in_a_row:
        text = f"it died {len(deaths)} times without committing an epoch; the last time: {last.text}"
        return GivenUp(GiveUpCode.NO_PROGRESS, text)
    return None


def wait_s(deaths: Sequence[Death], limits: RestartLimits) -> float:
    """How long to wait before the restart: not at all after the first death in a row, nor after a lost machine."""
    if len(deaths) <= 1 or deaths[-1].cause is Cause.LOST:
        return 0.0
    return doubled_s(limits.first_wait_s, len(deaths) - 2, limits.longest_wait_s)


def signature(text: str) -> str:
    """The part that is equal in two reports of the same failure: without numbers, ids and addresses."""
    plain = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "#", _first_words(text, 600))
    return re.sub(r"\d+", "#", plain)


def _first_words(text: str, most: int = _SHORT) -> str:
    """The failure itself, without the job history that Spark puts around it."""
    whole = " ".join(text.split("\n\tat ")[0].split())
    found = re.search(r"\(TID \d+\) \([^)]*\): (.*)", whole) or re.search(r"terminated with exception: (.*)", whole)
    said = found[1] if found else whole
    said = said.partition(" SQLSTATE")[0].partition(" Driver stacktrace:")[0].partition(" at org.apache.")[0]
    return said[:most].strip()
