"""Why a query run died: a lost machine, missing seats, a failed task, a bug; and whether it is restarted."""

import errno
from io import UnsupportedOperation

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

from barograph.engines.spark.query.failures.diagnosis import (
    Cause,
    Death,
    GiveUpCode,
    RestartLimits,
    diagnose,
    diagnose_failed_start,
    give_up,
    never_fits,
    signature,
    wait_s,
)
from barograph.model import BadInput

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
LIMITS = RestartLimits(
    same_failures=3, in_a_row=5, first_wait_s=0.5, longest_wait_s=3.0, keep_trying_s=60.0, within_s=600.0
)
DRIVER = "[STREAM_FAILED] Query [id = 3fd914bf-07aa-4605-a1ff-e689c5635eff] terminated with exception: {}"
PYTHON = LOST_TASK.format(
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "job.py", line 9, in <lambda>\n{}'
)
POSTGRES = "\nCaused by: org.postgresql.util.PSQLException: "
WRITING = LOST_TASK.format("org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows.")


@pytest.mark.parametrize(
    ("text", "lost", "cause"),
    [
        pytest.param(RESET, ["executor 1 on node-2"], Cause.LOST, id="a neighbour notices a lost executor first"),
        pytest.param(GONE, [], Cause.LOST, id="Spark says that an executor is lost"),
        pytest.param("[CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT] 7", [], Cause.SEATS, id="too few seats"),
        pytest.param(
            "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT", ["executor 1"], Cause.LOST, id="too few seats after a loss"
        ),
        pytest.param(DIVIDED, [], Cause.TASK, id="a failed task"),
        pytest.param(
            DRIVER.format("[STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST] The operator(s): X"),
            [],
            Cause.BUG,
            id="found when the first epoch is planned",
        ),
        pytest.param(
            LOST_TASK.format("io.netty.channel.StacklessClosedChannelException"),
            [],
            Cause.BESIDE,
            id="a connection that a failed task closed",
        ),
    ],
)
def test_causes(text: str, lost: list[str], cause: Cause) -> None:
    assert diagnose(text, 1.0, 4, lost).cause is cause


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(DRIVER.format("No space left on device"), id="a full disk at a commit"),
        pytest.param(DRIVER.format("x") + "\nCaused by: java.io.IOException: Disk quota exceeded", id="a cause"),
        pytest.param(LOST_TASK.format("java.io.IOException: Stream closed"), id="a file in a task"),
        pytest.param(
            f"{WRITING}\n\tat org.apache.spark.Some.other(Some:2)\n"
            "Caused by: java.net.SocketTimeoutException: Read timed out\n\tat java.net.Socket.read(Socket:1)",
            id="a cause below a stack",
        ),
        pytest.param(
            LOST_TASK.format("org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired"), id="Kafka"
        ),
        pytest.param(
            WRITING + "\nCaused by: java.sql.SQLTransientConnectionException: no connection available", id="JDBC"
        ),
        pytest.param(
            PYTHON.format("ConnectionRefusedError: [Errno 111] Connection refused"),
            id="a connection of a Python function",
        ),
        pytest.param(
            WRITING + POSTGRES + "x\n\tIt is a org.postgresql.util.PSQLException java.sql.SQLException",
            id="a driver's own class by its type",
        ),
        pytest.param(
            WRITING + "\nCaused by: a.b.C: x\n\tIt is a a.b.C java.sql.SQLException; SQLSTATE 57P03, number 0",
            id="a state of a database",
        ),
        pytest.param(
            WRITING + "\nCaused by: com.microsoft.sqlserver.jdbc.SQLServerException: x\n\tIt is a "
            "com.microsoft.sqlserver.jdbc.SQLServerException java.sql.SQLException; SQLSTATE S0001, number 40613",
            id="SQL Server's number of an outage",
        ),
        pytest.param(
            WRITING + "\nCaused by: a.b.Away: x\n\tIt is a a.b.Away java.io.IOException", id="files by their type"
        ),
        pytest.param(
            WRITING + "\nCaused by: a.b.Late: x\n\tIt is a a.b.Late java.util.concurrent.TimeoutException",
            id="time that was up, by its type",
        ),
        pytest.param(
            WRITING + "\nCaused by: java.sql.SQLNonTransientConnectionException: x\n\tIt is a "
            "java.sql.SQLNonTransientConnectionException java.sql.SQLNonTransientException java.sql.SQLException",
            id="the nearest type decides",
        ),
    ],
)
def test_what_passes_by_itself_is_an_outage(text: str) -> None:
    assert diagnose(text, 1.0, 4, []).cause is Cause.OUTAGE


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LOST_TASK.format("java.lang.ArithmeticException: / by zero"), id="arithmetic"),
        pytest.param(
            LOST_TASK.format("java.lang.RuntimeException: no timeout, no connection: a bug"), id="its own words"
        ),
        pytest.param(LOST_TASK.format("java.sql.SQLSyntaxErrorException: near FROM"), id="SQL that is wrong"),
        pytest.param(
            PYTHON.format("KeyError: 'timeout'"),
            id="a bug in a Python function",
        ),
        pytest.param(PYTHON.format("ValueError: the lookup had a timeout"), id="the last word of a program's own"),
        pytest.param(
            WRITING + "\nCaused by: a.b.Missing: x\n\tIt is a a.b.Missing java.io.FileNotFoundException "
            "java.io.IOException",
            id="a missing file by its type",
        ),
        pytest.param(
            WRITING + "\nCaused by: a.b.Wrong: x\n\tIt is a a.b.Wrong java.sql.SQLSyntaxErrorException "
            "java.sql.SQLNonTransientException java.sql.SQLException",
            id="SQL that is wrong, by its type",
        ),
        pytest.param(
            WRITING + "\nCaused by: java.sql.BatchUpdateException: x\n\tIt is a java.sql.BatchUpdateException "
            "java.sql.SQLException\nCaused by: org.postgresql.util.PSQLException: ERROR: duplicate key\n\tIt is a "
            "org.postgresql.util.PSQLException java.sql.SQLException; SQLSTATE 23505, number 0",
            id="a row that a database refuses, in a batch",
        ),
        pytest.param(
            WRITING + "\nCaused by: com.microsoft.sqlserver.jdbc.SQLServerException: x\n\tIt is a "
            "com.microsoft.sqlserver.jdbc.SQLServerException java.sql.SQLException; SQLSTATE S0001, number 207",
            id="SQL Server's number of a bug",
        ),
        pytest.param(WRITING + POSTGRES + "FATAL: password authentication failed for user", id="a wrong password"),
        pytest.param(WRITING + "\nCaused by: a.b.C: too many connections", id="a program in a database's words"),
        pytest.param(WRITING + "\nCaused by: java.net.MalformedURLException: no protocol: x", id="no address"),
        pytest.param(PYTHON.format("redis.exceptions.AuthenticationError: x"), id="a client that is refused"),
        pytest.param(
            PYTHON.format("botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling PutObject"),
            id="a right that is missing",
        ),
    ],
)
def test_a_bug_is_no_outage(text: str) -> None:
    assert diagnose(text, 1.0, 4, []).cause is Cause.TASK


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        pytest.param(AnalysisException("no column x"), Cause.BUG, id="refused by Spark"),
        pytest.param(KeyError("topic"), Cause.BUG, id="the program's own function"),
        pytest.param(BadInput("it must return a DataStreamWriter"), Cause.BUG, id="it returns something else"),
        pytest.param(FileNotFoundError(2, "no schema.json"), Cause.OUTAGE, id="a file that the function reads"),
        pytest.param(PermissionError(errno.EACCES, "schema.json"), Cause.BUG, id="a file that it may not read"),
        pytest.param(UnsupportedOperation("not writable"), Cause.BUG, id="a file that it uses wrongly"),
        pytest.param(Py4JError("java.io.IOException: disk"), Cause.OUTAGE, id="files of the checkpoint"),
        pytest.param(
            PySparkException("java.lang.IllegalArgumentException: java.net.UnknownHostException: namenode"),
            Cause.OUTAGE,
            id="names that are not resolved",
        ),
        pytest.param(Py4JError("java.lang.NullPointerException"), Cause.TASK, id="anything else"),
    ],
)
def test_causes_of_failed_starts(error: Exception, cause: Cause) -> None:
    assert diagnose_failed_start(error, 1.0).cause is cause


def raised(outer: Exception, inner: Exception, link: str) -> Exception:
    """outer, as Python raises it for inner or while it handles that."""
    try:
        try:
            raise inner
        except Exception as caught:
            if link == "from":
                raise outer from caught
            if link == "from None":
                raise outer from None
            raise outer  # noqa: B904  # as a program may do
    except type(outer) as error:
        return error


class AutoReconnect(Exception):  # noqa: N818  # its name there
    """As a client's library has it."""

    __module__ = "pymongo.errors"


@pytest.mark.parametrize(
    ("inner", "link", "cause"),
    [
        pytest.param(ConnectionError("away"), "from", Cause.OUTAGE, id="a connection"),
        pytest.param(ConnectionError("away"), "while", Cause.OUTAGE, id="a connection, not named"),
        pytest.param(ConnectionError("away"), "from None", Cause.OUTAGE, id="a connection, hidden"),
        pytest.param(TimeoutError("late"), "from", Cause.OUTAGE, id="time that was up"),
        pytest.param(AutoReconnect("away"), "from", Cause.OUTAGE, id="a client's own class"),
        pytest.param(OSError(errno.ENOSPC, "full"), "from", Cause.OUTAGE, id="a full disk"),
        pytest.param(OSError(errno.ESTALE, "away"), "while", Cause.OUTAGE, id="a file system that is away"),
        pytest.param(FileNotFoundError(errno.ENOENT, "x"), "from", Cause.OUTAGE, id="a missing file"),
        pytest.param(FileNotFoundError(errno.ENOENT, "x"), "while", Cause.BUG, id="a file that may be missing"),
        pytest.param(PermissionError(errno.EACCES, "x"), "from", Cause.BUG, id="a right that is missing"),
        pytest.param(IsADirectoryError(errno.EISDIR, "x"), "from", Cause.BUG, id="a folder"),
        pytest.param(OSError(errno.EINVAL, "x"), "from", Cause.BUG, id="a wrong use"),
        pytest.param(KeyError("topic"), "from", Cause.BUG, id="a bug"),
        pytest.param(KeyError("topic"), "while", Cause.BUG, id="a bug, not named"),
    ],
)
def test_the_cause_of_a_programs_error_counts(inner: Exception, link: str, cause: Cause) -> None:
    error = raised(RuntimeError("cannot load lookup"), inner, link)
    assert diagnose_failed_start(error, 1.0).cause is cause
    assert diagnose_failed_start(raised(ValueError("no lookup"), error, "from"), 1.0).cause is cause
    refused = raised(BadInput("it must be a folder"), inner, link)
    assert diagnose_failed_start(refused, 1.0).cause is Cause.BUG


def test_what_spark_refuses_is_told_in_its_words_without_advice_that_does_not_help() -> None:
    said = (
        "[STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST] Streaming real-time mode has the following "
        "limitation: The operator(s): org.apache.spark.sql.execution.python.BatchEvalPythonExec is not in the operator "
        "allowlist for Real-Time Mode. To bypass this check, set spark.sql.streaming.realTimeMode.allowlistCheck to "
        "false. By changing this, you agree to run the query at your own risk. SQLSTATE: 0A000"
    )
    assert diagnose(DRIVER.format(said), 1.0, 0, []).text == (
        "Spark refuses the query: [STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST] The operator(s): "
        "org.apache.spark.sql.execution.python.BatchEvalPythonExec is not in the operator allowlist for Real-Time Mode."
    )


def test_the_text_is_the_failure_itself_without_the_history_around_it() -> None:
    said = diagnose(DIVIDED, 1.0, 4, []).text
    assert said == "a task failed: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero."
    assert diagnose(RESET, 1.0, 4, ["executor 1 on node-2"]).text == "lost executor 1 on node-2"


def test_causes_are_no_part_of_the_text() -> None:
    assert diagnose(DRIVER.format("x") + "\nCaused by: a.B: y", 1.0, 4, []).text == "a task failed: x"


def test_equal_failures_of_other_tasks_have_one_signature() -> None:
    other = DIVIDED.replace("TID 48", "TID 97").replace("stage 20.0", "stage 33.0").replace("3fd914bf", "aaaaaaaa")
    assert signature(DIVIDED) == signature(other)
    assert signature(DIVIDED) != signature(RESET)


def deaths(*kinds: tuple[Cause, int, str], every_s: float = 20.0) -> list[Death]:
    return [Death(i * every_s, cause, "text", epoch, sign) for i, (cause, epoch, sign) in enumerate(kinds)]


TASK = (Cause.TASK, 4, "a")
BESIDE = (Cause.BESIDE, 4, "")
OUTAGE = (Cause.OUTAGE, 4, "")
LOST = (Cause.LOST, 4, "")


@pytest.mark.parametrize(
    ("died", "code"),
    [
        pytest.param(deaths(TASK), None, id="once"),
        pytest.param(deaths(TASK, TASK), None, id="twice"),
        pytest.param(deaths(TASK, TASK, TASK), GiveUpCode.SAME_FAILURE, id="three times the same"),
        pytest.param(deaths(TASK, TASK, (Cause.TASK, 5, "a")), None, id="at another epoch"),
        pytest.param(deaths(TASK, TASK, (Cause.TASK, 4, "b")), None, id="for another reason"),
        pytest.param(deaths(TASK, BESIDE, TASK, TASK), GiveUpCode.SAME_FAILURE, id="a connected task between them"),
        pytest.param(deaths(TASK, OUTAGE, TASK, TASK), GiveUpCode.SAME_FAILURE, id="a lost connection between them"),
        pytest.param(deaths(BESIDE, BESIDE, BESIDE), None, id="only connected tasks"),
        pytest.param(deaths(TASK, TASK, (Cause.LOST, 4, ""), TASK), None, id="a lost machine between them"),
        pytest.param(deaths((Cause.BUG, 0, "x")), GiveUpCode.REFUSED, id="refused"),
        pytest.param(deaths(*[LOST] * 4), None, id="machines keep dying"),
        pytest.param(deaths(*[LOST] * 5), GiveUpCode.NO_PROGRESS, id="machines never stop dying"),
        pytest.param(deaths(*[LOST] * 5, every_s=1.0), None, id="many machines die within a moment"),
        pytest.param(deaths(*[LOST] * 20, every_s=300.0), None, id="a machine dies now and then in a long epoch"),
        pytest.param(deaths(*[OUTAGE] * 50, every_s=1.0), None, id="an outage of less than a minute"),
        pytest.param(deaths(*[OUTAGE] * 50, every_s=2.0), GiveUpCode.NO_PROGRESS, id="an outage that lasts too long"),
        pytest.param(deaths(OUTAGE, OUTAGE, every_s=90.0), None, id="two outages"),
        pytest.param(deaths(TASK, TASK, TASK, every_s=0.0), GiveUpCode.SAME_FAILURE, id="a bug is told at once"),
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
    lost = give_up(deaths(*[LOST] * 5), LIMITS)
    assert lost is not None and not lost.is_bug and "died 5 times in 80 s without committing an epoch" in lost.text


def test_the_first_restart_is_immediate_and_later_ones_wait_longer_and_longer() -> None:
    died = deaths(*[TASK] * 6)
    assert wait_s(deaths(*[TASK] * 6, every_s=700.0), LIMITS) == 0.0, "deaths that are long ago do not count"
    assert [wait_s(died[:n], LIMITS) for n in range(1, 7)] == [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("seats", "stillborn", "advice"),
    [
        (0, "", "give the application more executors or cores"),
        (2, "java.lang.ClassNotFoundException: org.apache.spark.barograph.BarographPlugin", "give the application"),
        (0, "Unable to create executor due to no space", "as they start (Unable to create executor due to no space)"),
        (
            0,
            "Unable to create executor due to org.apache.spark.barograph.BarographPlugin",
            "they do not have barograph-plugin.jar: barograph submit and barograph conf --ship send it",
        ),
    ],
)
def test_executors_that_end_as_they_start_are_named_as_the_reason(seats: int, stillborn: str, advice: str) -> None:
    deaths = [Death(1.0, Cause.SEATS, "too few seats", None, "", needed_seats=4)] * 2
    why = never_fits(deaths, seats, can_grow=True, stillborn=stillborn)
    assert why is not None
    assert f"it needs 4 seats, one for each instance, and the application has {seats}: " in why.text
    assert advice in why.text
