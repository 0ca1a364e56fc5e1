"""Why a query run died, and whether the query is restarted. Pure: times, texts and executors are arguments.

Distinguished are: a lost machine (restart at once), missing seats (wait for a node), an outage of files, connections or
space (restart for minutes, with a growing delay), a failed task (restart with a growing delay), another driver on the
same checkpoint (no restart), and a bug in the query:
it cannot be built, Spark refuses to analyse it, or the same failure occurs at the same epoch several times although no
executor was lost. Nothing is started here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from barograph.config import default
from barograph.engines.spark.backoff import doubled_s
from barograph.engines.spark.query.failures.kafka_errors import KafkaError, kafka_error
from barograph.engines.spark.query.failures.ownership import other_owner
from barograph.engines.spark.query.failures.transient import is_transient, passes
from barograph.model import BadInput

_NO_SEATS = "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT"
_SLOTS = re.compile(r"needs (\d+) concurrent task slots.*?only (\d+) are currently free", re.DOTALL)
_LOST = ("ExecutorLostFailure", "ExecutorDeadException", "Executor heartbeat timed out")
# The error of a task that lost its connection to a task that has failed: an effect, never the cause.
_BESIDE = (
    "closed before termination", "Connection reset", "Broken pipe", "Failed to connect to", "ClosedChannelException",
)  # fmt: skip
# Spark's error condition for a query that cannot run in real-time mode. Some are only found when an epoch is planned.
_NOT_REAL_TIME = "[STREAMING_REAL_TIME_MODE"
# Names of Java classes and of Spark's error conditions that recur at every restart.
_BUGS = (
    "AnalysisException", "ParseException", _NOT_REAL_TIME, "UNRESOLVED_COLUMN", "IllegalArgumentException",
)  # fmt: skip
# Of a run that was ended because two of its executors lost their connection; see driver/partitions.py.
CUT_OFF = "do not reach each other"
# In the end of an executor that does not find the plug-in.
_OURS = "org.apache.spark.barograph"
_WITHOUT_JAR = ", because they do not have barograph-plugin.jar: barograph submit and barograph conf --ship send it"
_UNKNOWN = "; their own logs say why"
_SHORT = 300


class Cause(StrEnum):
    """lost: an executor or node died. seats: too few are left. outage: files, a service or space are not available now.
    task: a task failed. beside: the error is of a task that lost its connection to a failed task. owner: another
    driver, or another start in this one, has the checkpoint. bug: no restart can help."""

    LOST = "lost"
    SEATS = "seats"
    OUTAGE = "outage"
    TASK = "task"
    BESIDE = "beside"
    OWNER = "owner"
    BUG = "bug"


@dataclass(frozen=True, slots=True)
class Death:
    """Of one query run. at_s: of any one clock. epoch: the open one. signature: equal for equal failures.
    needed_seats: of a run that had too few, 0 where that is not known."""

    at_s: float
    cause: Cause
    text: str
    epoch: int | None
    signature: str
    needed_seats: int = 0


@dataclass(frozen=True, slots=True)
class RestartLimits:
    """same_failures: the same failure this many times at one epoch is a bug. in_a_row, keep_trying_s: the query is
    given up after so many deaths without a committed epoch between them, if they are spread over at least that time.
    within_s: older deaths do not count for that. The first death in a row is followed by a restart at once; the wait is
    first_wait_s after the second and doubles up to longest_wait_s. patience_s: the longest wait for seats."""

    same_failures: int = default("restart.same-failures")
    in_a_row: int = default("restart.in-a-row")
    keep_trying_s: float = default("restart.keep-trying")
    within_s: float = default("restart.within")
    first_wait_s: float = default("restart.first-wait")
    longest_wait_s: float = default("restart.longest-wait")
    patience_s: float = default("restart.patience")


def diagnose(text: str, at_s: float, epoch: int | None, lost: Sequence[str], has_run: bool = False) -> Death:
    """Why a run ended. text: Spark's error. lost: executors that the run began with and that do not answer now.
    has_run: whether an earlier run of the query was up."""
    said = _first_words(text)
    if taken := other_owner(text):
        return Death(at_s, Cause.OWNER, taken, epoch, "")
    if lost:
        return Death(at_s, Cause.LOST, f"lost {', '.join(lost)}", epoch, "")
    if CUT_OFF in said:
        return Death(at_s, Cause.LOST, said, epoch, "")
    if _NO_SEATS in text:
        return _without_seats(text, at_s, epoch)
    if _NOT_REAL_TIME in said:
        return Death(at_s, Cause.BUG, f"Spark refuses the query: {_limitation(text)}", epoch, signature(text))
    if any(sign in text for sign in _LOST):
        return Death(at_s, Cause.LOST, f"lost an executor: {said}", epoch, "")
    if any(sign in said for sign in _BESIDE):
        return Death(at_s, Cause.BESIDE, f"a connected task failed: {said}", epoch, "")
    if found := kafka_error(text, has_run or (epoch or 0) > 0):
        return _by_kafka(found, at_s, epoch)
    if is_transient(text):
        return Death(at_s, Cause.OUTAGE, f"something it needs is not available: {said}", epoch, "")
    return Death(at_s, Cause.TASK, f"a task failed: {said}", epoch, signature(text))


def _by_kafka(found: KafkaError, at_s: float, epoch: int | None) -> Death:
    if found.is_final:
        return Death(at_s, Cause.BUG, f"{found.text} ({found.said})", epoch, signature(found.said))
    return Death(at_s, Cause.OUTAGE, f"something it needs is not available: {found.text} ({found.said})", epoch, "")


def too_few_seats(needed: int, free: int) -> str:
    """What Spark says of a run without a seat for each instance, for one that Spark let wait for them."""
    return f"[{_NO_SEATS}] It needs {needed} concurrent task slots, but only {free} are currently free"


def _without_seats(text: str, at_s: float, epoch: int | None) -> Death:
    found = _SLOTS.search(text)
    said = f": it needs {found[1]} and {found[2]} are free" if found else ""
    return Death(at_s, Cause.SEATS, f"too few seats for all instances{said}", epoch, "", int(found[1]) if found else 0)


def diagnose_failed_start(error: Exception, at_s: float, has_run: bool = False) -> Death:
    """Why a run could not be started. error: of Spark, or of the program's own function that builds the query."""
    text = f"{type(error).__name__}: {error}"
    said = _first_words(text)
    if taken := other_owner(text):
        return Death(at_s, Cause.OWNER, taken, None, "")
    if _NO_SEATS in text:
        return _without_seats(text, at_s, None)
    if found := kafka_error(text, has_run):
        return _by_kafka(found, at_s, None)
    if passes(error):
        return Death(at_s, Cause.OUTAGE, f"something it needs to start is not available: {said}", None, "")
    if isinstance(error, BadInput) or not isinstance(error, PySparkException | Py4JError):
        return Death(at_s, Cause.BUG, f"the function that builds it fails: {said}", None, signature(text))
    if any(sign in text for sign in _BUGS):
        return Death(at_s, Cause.BUG, f"Spark refuses the query: {said}", None, signature(text))
    return Death(at_s, Cause.TASK, f"it could not be started: {said}", None, signature(text))


class GiveUpCode(StrEnum):
    """refused: by Spark, as it is written, or it cannot be built. same-failure: again and again at one epoch.
    no-progress: too many deaths without a committed epoch, for too long. never-fits: it has never run, and needs more
    seats than the application has. other-owner: another driver, or another start in this one, has its checkpoint.
    application-ended: there is no Spark to restart it in. supervision-failed: Barograph itself failed, and the query
    was stopped."""

    REFUSED = "refused"
    SAME_FAILURE = "same-failure"
    NO_PROGRESS = "no-progress"
    NEVER_FITS = "never-fits"
    OTHER_OWNER = "other-owner"
    APPLICATION_ENDED = "application-ended"
    SUPERVISION_FAILED = "supervision-failed"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Why a query is not restarted. text: for people to read."""

    code: GiveUpCode
    text: str

    @property
    def is_bug(self) -> bool:
        """Whether the query is at fault, not the cluster."""
        return self.code in (GiveUpCode.REFUSED, GiveUpCode.SAME_FAILURE)


def ended_by(topology: str, error: Exception, why: GivenUp) -> Exception:
    """What the program sees of a query that is given up. error: of its last run."""
    if why.code is GiveUpCode.NEVER_FITS:  # Spark's stack trace says nothing more
        return BadInput(f"the query {topology} was not started: {why.text}")
    if why.code is GiveUpCode.OTHER_OWNER:
        return BadInput(f"the query {topology} was ended: {why.text}")
    error.add_note(f"not started again: {why.text}")
    return error


def give_up(deaths: Sequence[Death], limits: RestartLimits) -> GivenUp | None:
    """Why the query is not restarted; None if it is. deaths: those since the last committed epoch, the latest last."""
    last = deaths[-1]
    if last.cause is Cause.OWNER:
        return GivenUp(GiveUpCode.OTHER_OWNER, last.text)
    if last.cause is Cause.BUG:
        return GivenUp(GiveUpCode.REFUSED, f"a bug in the query: {last.text}")
    # A lost machine may have caused the failures before it, so only failures after it count. The error of a
    # connected task hides the failure itself, so it is skipped; so is that of a connection, which may be one.
    same = 0
    for death in reversed(deaths):
        if death.cause in (Cause.BESIDE, Cause.OUTAGE):
            continue
        if (death.cause, death.signature, death.epoch) != (Cause.TASK, last.signature, last.epoch):
            break
        same += 1
    if same >= limits.same_failures:
        where = "" if last.epoch is None else f" at epoch {last.epoch}"
        text = f"a bug in the query: {same} times the same failure{where} with no executor lost: {last.text}"
        return GivenUp(GiveUpCode.SAME_FAILURE, text)
    recent = [d for d in deaths if last.at_s - d.at_s <= limits.within_s]
    lasted_s = last.at_s - recent[0].at_s
    if len(recent) >= limits.in_a_row and lasted_s >= limits.keep_trying_s:
        text = (
            f"it died {len(recent)} times in {lasted_s:.0f} s without committing an epoch; the last time: {last.text}"
        )
        return GivenUp(GiveUpCode.NO_PROGRESS, text)
    return None


def never_fits(deaths: Sequence[Death], seats: int, can_grow: bool, stillborn: str = "") -> GivenUp | None:
    """Of a query that has never run. seats: of all executors. can_grow: whether executors may still come; then they
    were waited for between two deaths. stillborn: why executors end as they start; empty if they do not."""
    last = deaths[-1]
    if last.cause is not Cause.SEATS or last.needed_seats <= seats:
        return None
    if can_grow and sum(d.cause is Cause.SEATS for d in deaths) < 2:
        return None
    there = f"it needs {last.needed_seats} seats, one for each instance, and the application has {seats}"
    # Fewer instances were tried at a first start. What is left is what cannot be chosen.
    advice = (
        "give the application more executors or cores; a source has an instance for each partition of its input, and a "
        "stateful operator as many as its checkpoint began with"
    )
    if stillborn and not seats:
        why = _WITHOUT_JAR if _OURS in stillborn else _UNKNOWN
        advice = f"executors end as they start ({_first_words(stillborn)}){why}"
    return GivenUp(GiveUpCode.NEVER_FITS, f"{there}: {advice}")


def wait_s(deaths: Sequence[Death], limits: RestartLimits) -> float:
    """How long to wait before the restart: not at all after the first death in a row, nor after a lost machine."""
    in_a_row = sum(deaths[-1].at_s - d.at_s <= limits.within_s for d in deaths)
    if in_a_row <= 1 or deaths[-1].cause is Cause.LOST:
        return 0.0
    return doubled_s(limits.first_wait_s, in_a_row - 2, limits.longest_wait_s)


def signature(text: str) -> str:
    """The part that is equal in two reports of the same failure: without numbers, ids and addresses."""
    plain = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "#", _first_words(text, 600))
    return re.sub(r"\d+", "#", plain)


def _limitation(text: str) -> str:
    """Spark's reason why a query cannot run in real-time mode, without its advice to turn the check off: the setting
    that it names is already off where the plug-in is loaded, which makes the check itself."""
    said = _first_words(text, 2 * _SHORT).replace("Streaming real-time mode has the following limitation: ", "")
    return said.partition(" To bypass this check")[0]


def _first_words(text: str, most: int = _SHORT) -> str:
    """The failure itself, without the job history that Spark puts around it."""
    whole = " ".join(text.split("\n\tat ")[0].split("\nCaused by: ")[0].split())
    found = re.search(r"\(TID \d+\) \([^)]*\): (.*)", whole) or re.search(r"terminated with exception: (.*)", whole)
    said = found[1] if found else whole
    said = said.partition(" SQLSTATE")[0].partition(" Driver stacktrace:")[0].partition(" at org.apache.")[0]
    return said[:most].strip()
