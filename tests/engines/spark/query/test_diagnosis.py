"""Why a query run died: a lost machine, missing seats, a failed task, a bug; and whether it is restarted."""

import pytest

from barograph.engines.spark.query.diagnosis import (
    Cause,
    Death,
    GiveUpCode,
    RestartLimits,
    diagnose,
    give_up,
    signature,
    wait_s,
)

LOST_TASK = (
    "[STREAM_FAILED] Query [id = 3fd914bf-07aa-4605-a1ff-e689c5635eff, runId = 5ca65768-240b-46ae-a27d-73aebd7aca2a] "
    "terminated with exception: Job aborted due to stage failure: Task 2 in stage 20.0 failed 1 times, most recent "
    "failure: Lost task 2.0 in stage 20.0 (TID 48) (127.0.0.4 executor 0): {}\n\tat org.apache.spark.Some.line(Some:1)"
)
RESET = LOST_TASK.format(
    "org.apache.spark.SparkException: Connection to streaming shuffle writer 45 closed before termination"
)
DIVIDED = LOST_TASK.format("org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.")
GONE = LOST_TASK.format("ExecutorLostFailure (executor 0 exited caused by one of the running tasks)")
LIMITS = RestartLimits(same_failures=3, in_a_row=5, first_wait_s=0.5, longest_wait_s=3.0)


@pytest.mark.parametrize(
    ("text", "lost", "starting", "cause"),
    [
        pytest.param(
            RESET, ["executor 1 on node-2"], False, Cause.LOST, id="a neighbour notices a lost executor first"
        ),
        pytest.param(GONE, [], False, Cause.LOST, id="Spark says that an executor is lost"),
        pytest.param("[CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT] 7", [], False, Cause.SEATS, id="too few seats"),
        pytest.param(
            "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT", ["executor 1"], False, Cause.LOST, id="too few seats after a loss"
        ),
        pytest.param(DIVIDED, [], False, Cause.TASK, id="a failed task"),
        pytest.param("AnalysisException: no column x", [], True, Cause.BUG, id="refused before it ran"),
        pytest.param("java.io.IOException: disk", [], True, Cause.TASK, id="a start that may work the next time"),
    ],
)
def test_causes(text: str, lost: list[str], starting: bool, cause: Cause) -> None:
    assert diagnose(text, 1.0, 4, lost, starting).cause is cause


def test_the_text_is_the_failure_itself_without_the_history_around_it() -> None:
    said = diagnose(DIVIDED, 1.0, 4, []).text
    assert said == "a task failed: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero."
    assert diagnose(RESET, 1.0, 4, ["executor 1 on node-2"]).text == "lost executor 1 on node-2"


def test_equal_failures_of_other_tasks_have_one_signature() -> None:
    other = DIVIDED.replace("TID 48", "TID 97").replace("stage 20.0", "stage 33.0").replace("3fd914bf", "aaaaaaaa")
    assert signature(DIVIDED) == signature(other)
    assert signature(DIVIDED) != signature(RESET)


def deaths(*kinds: tuple[Cause, int, str]) -> list[Death]:
    return [Death(float(i), cause, "text", epoch, sign) for i, (cause, epoch, sign) in enumerate(kinds)]


TASK = (Cause.TASK, 4, "a")
BESIDE = (Cause.BESIDE, 4, "")


@pytest.mark.parametrize(
    ("died", "code"),
    [
        pytest.param(deaths(TASK), None, id="once"),
        pytest.param(deaths(TASK, TASK), None, id="twice"),
        pytest.param(deaths(TASK, TASK, TASK), GiveUpCode.SAME_FAILURE, id="three times the same"),
        pytest.param(deaths(TASK, TASK, (Cause.TASK, 5, "a")), None, id="at another epoch"),
        pytest.param(deaths(TASK, TASK, (Cause.TASK, 4, "b")), None, id="for another reason"),
        pytest.param(deaths(TASK, BESIDE, TASK, TASK), GiveUpCode.SAME_FAILURE, id="a connected task between them"),
        pytest.param(deaths(BESIDE, BESIDE, BESIDE), None, id="only connected tasks"),
        pytest.param(deaths(TASK, TASK, (Cause.LOST, 4, ""), TASK), None, id="a lost machine between them"),
        pytest.param(deaths((Cause.BUG, 0, "x")), GiveUpCode.REFUSED, id="refused"),
        pytest.param(deaths(*[(Cause.LOST, 4, "")] * 4), None, id="machines keep dying"),
        pytest.param(deaths(*[(Cause.LOST, 4, "")] * 5), GiveUpCode.NO_PROGRESS, id="machines never stop dying"),
    ],
)
def test_when_it_is_given_up(died: list[Death], code: GiveUpCode | None) -> None:
    found = give_up(died, LIMITS)
    assert (None if found is None else found.code) is code


def test_only_failures_of_the_query_itself_are_bugs() -> None:
    same, refused = give_up(deaths(TASK, TASK, TASK), LIMITS), give_up(deaths((Cause.BUG, 0, "x")), LIMITS)
    assert same is not None and same.is_bug
    assert same.text == "a bug in the query: 3 times the same failure at epoch 4 with no executor lost: text"
    assert refused is not None and refused.is_bug and refused.text == "a bug in the query: text"
    lost = give_up(deaths(*[(Cause.LOST, 4, "")] * 5), LIMITS)
    assert lost is not None and not lost.is_bug and "died 5 times" in lost.text


def test_the_first_restart_is_immediate_and_later_ones_wait_longer_and_longer() -> None:
    died = deaths(*[TASK] * 6)
    assert [wait_s(died[:n], LIMITS) for n in range(1, 7)] == [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]
