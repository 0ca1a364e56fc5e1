"""Why a query died, and whether it is started again. Pure: times, texts and executors come in as arguments.

Told apart: a lost machine (try again at once), missing seats (wait for a node), a failed task (try again, more slowly
each time), and a bug in the query: what Spark refuses to analyse, or the same failure at the same epoch several times
although no executor was lost. Nothing is started here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

_NO_SEATS = "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT"
_LOST = ("ExecutorLostFailure", "ExecutorDeadException", "Executor heartbeat timed out")
# What a task says that lost its connection to another one, which has failed or is gone: an effect, never the cause.
_BESIDE = ("closed before termination", "Connection reset", "Broken pipe", "Failed to connect to")
# Names of Java classes and of Spark's error conditions that no other try can change.
_BUGS = (
    "AnalysisException", "ParseException", "STREAMING_REAL_TIME_MODE", "UNRESOLVED_COLUMN", "IllegalArgumentException",
)  # fmt: skip
_SHORT = 300
BUG = "a bug in the query"


class Cause(StrEnum):
    """lost: an executor or node died. seats: too few left. task: a task failed. beside: a task whose neighbour failed
    was heard first. bug: no other try can help."""

    LOST = "lost"
    SEATS = "seats"
    TASK = "task"
    BESIDE = "beside"
    BUG = "bug"


@dataclass(frozen=True, slots=True)
class Death:
    """One life's end. at_s: any one clock. epoch: the one that was open. signature: equal for equal failures."""

    at_s: float
    cause: Cause
    text: str
    epoch: int | None
    signature: str


@dataclass(frozen=True, slots=True)
class Limits:
    """same_failures: this often the same failure at one epoch is a bug. in_a_row: this many deaths without a committed
    epoch between them end it. first_wait_s is doubled for each death in a row after the first, up to longest_wait_s;
    the first is answered at once. patience_s: how long seats are waited for."""

    same_failures: int = 3
    in_a_row: int = 10
    first_wait_s: float = 0.25
    longest_wait_s: float = 15.0
    patience_s: float = 120.0


def diagnose(text: str, at_s: float, epoch: int | None, lost: Sequence[str], starting: bool = False) -> Death:
    """lost: executors the life began with and that do not answer now, as words. starting: it failed before it ran."""
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
        return Death(at_s, Cause.BESIDE, f"a task beside this one failed: {said}", epoch, "")
    return Death(at_s, Cause.TASK, f"a task failed: {said}", epoch, signature(text))


def give_up(deaths: Sequence[Death], limits: Limits) -> str:
    """Why the query is not started again, in one sentence; empty where it is. deaths: those since the last committed
    epoch, the latest last."""
    last = deaths[-1]
    if last.cause is Cause.BUG:
        return f"{BUG}: {last.text}"
    # A lost machine may have been the reason for what failed before it, so only failures after it count. A neighbour
    # that was heard first hides one of them, and says nothing against the others.
    same = 0
    for death in reversed(deaths):
        if death.cause is Cause.BESIDE:
            continue
        if (death.cause, death.signature, death.epoch) != (Cause.TASK, last.signature, last.epoch):
            break
        same += 1
    if same >= limits.same_failures:
        where = "" if last.epoch is None else f" at epoch {last.epoch}"
        return f"{BUG}: {same} times the same failure{where} with no executor lost: {last.text}"
    if len(deaths) >= limits.in_a_row:
        return f"it died {len(deaths)} times without getting anything done; the last time: {last.text}"
    return ""


def wait_s(deaths: Sequence[Death], limits: Limits) -> float:
    """How long to wait before the next life: not at all after the first death in a row, nor after a lost machine."""
    if len(deaths) <= 1 or deaths[-1].cause is Cause.LOST:
        return 0.0
    wait: float = limits.first_wait_s * 2 ** min(len(deaths) - 2, 30)
    return min(wait, limits.longest_wait_s)


def signature(text: str) -> str:
    """What two reports of the same failure have in common: no numbers, no ids, no addresses."""
    plain = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "#", _first_words(text, 600))
    return re.sub(r"\d+", "#", plain)


def _first_words(text: str, most: int = _SHORT) -> str:
    """The failure itself: Spark puts a job's whole history around it."""
    whole = " ".join(text.split("\n\tat ")[0].split())
    found = re.search(r"\(TID \d+\) \([^)]*\): (.*)", whole) or re.search(r"terminated with exception: (.*)", whole)
    said = found[1] if found else whole
    said = said.partition(" SQLSTATE")[0].partition(" Driver stacktrace:")[0].partition(" at org.apache.")[0]
    return said[:most].strip()
