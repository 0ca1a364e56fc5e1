"""Errors of Kafka: what is wrong and what to do, in one sentence; those that do not pass end the query at once."""

import pytest
from pyspark.errors import AnalysisException

from barograph.engines.spark.query.failures.diagnosis import (
    Cause,
    GiveUpCode,
    RestartLimits,
    diagnose,
    diagnose_failed_start,
    give_up,
)

DIED = "[STREAM_FAILED] Query [id = 1] terminated with exception: {0}: {1} SQLSTATE: XXKST\nCaused by: {0}: {1}"
ERRORS = "org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("name", "epoch", "cause", "said"),
    [
        ("SaslAuthenticationException", None, Cause.BUG, "refuses the login: correct user and password"),
        ("SaslAuthenticationException", 7, Cause.BUG, "refuses the login: correct user and password"),
        ("TopicAuthorizationException", 0, Cause.BUG, "does not let this user read or write the topic"),
        ("UnknownTopicOrPartitionException", None, Cause.BUG, "the topic does not exist: make it"),
        ("UnknownTopicOrPartitionException", 0, Cause.BUG, "the topic does not exist: make it"),
        ("UnknownTopicOrPartitionException", 7, Cause.OUTAGE, "the topic does not exist: make it"),
        ("TimeoutException", None, Cause.OUTAGE, "no Kafka broker answers: start it, or correct"),
    ],
)
def test_what_a_run_died_of(name: str, epoch: int | None, cause: Cause, said: str) -> None:
    death = diagnose(DIED.format(ERRORS + name, "Words of Kafka."), 1.0, epoch, [])
    assert death.cause is cause
    assert said in death.text
    assert "Words of Kafka." in death.text
    given_up = give_up([death], RestartLimits())
    assert (given_up is not None and given_up.code is GiveUpCode.REFUSED) is (cause is Cause.BUG)


def test_a_connector_that_is_missing() -> None:
    error = AnalysisException("Failed to find data source: kafka. Please deploy the application as per the guide.")
    death = diagnose_failed_start(error, 1.0)
    assert death.cause is Cause.BUG
    assert "the Kafka connector is missing: add org.apache.spark:spark-sql-kafka-0-10_2.13" in death.text


def test_a_lost_executor_explains_an_error_of_kafka() -> None:
    assert diagnose(DIED.format(ERRORS + "TimeoutException", "x"), 1.0, 3, ["2"]).cause is Cause.LOST


def test_other_timeouts_are_not_of_kafka() -> None:
    death = diagnose(DIED.format("java.util.concurrent.TimeoutException", "x"), 1.0, 3, [])
    assert death.cause is Cause.OUTAGE
    assert "Kafka" not in death.text
