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
from barograph.engines.spark.query.failures.kafka_errors import CONNECTOR, kafka_error
from barograph.maven import pinned

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


# As Spark's driver tells them: its message, then the class and the first line of each cause (``Bridge.awaitEnd``).
CLIENT = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: {0} SQLSTATE: XXKST\n"
    "Caused by: org.apache.kafka.common.KafkaException: {0}\nCaused by: {1}"
)
SEMI = "semi-colon"
KAFKA = "org.apache.kafka.common."
JAAS = "java.lang.IllegalArgumentException: "
CONFIG = "org.apache.kafka.common.config.ConfigException: "
MADE = "Failed to create new KafkaAdminClient"
LOGIN = "correct kafka.sasl.jaas.config and kafka.sasl.mechanism"


@pytest.mark.parametrize(
    ("text", "cause", "told", "said"),
    [
        pytest.param(
            CLIENT.format(MADE, CONFIG + "No resolvable bootstrap urls given in bootstrap.servers"), Cause.OUTAGE,
            "no host in kafka.bootstrap.servers has an address: correct the names", "No resolvable bootstrap urls",
            id="a host without an address",
        ),
        pytest.param(
            CLIENT.format(MADE, CONFIG + "Invalid url in bootstrap.servers: localhost"), Cause.BUG,
            "not written as HOST:PORT: correct kafka.bootstrap.servers", "Invalid url in bootstrap.servers: localhost",
            id="a broker without a port",
        ),
        pytest.param(
            CLIENT.format(
                MADE,
                JAAS + "Could not find a 'KafkaClient' entry in the JAAS configuration. System property "
                "'java.security.auth.login.config' is not set",
            ),
            Cause.BUG, LOGIN, "Could not find a 'KafkaClient' entry in the JAAS configuration", id="no login",
        ),
        pytest.param(
            CLIENT.format("Failed to construct kafka producer", f"{JAAS}JAAS config entry not terminated by {SEMI}"),
            Cause.BUG, LOGIN, "(JAAS config entry not terminated by semi-colon)", id="a login without its semicolon",
        ),
        pytest.param(
            CLIENT.format(
                MADE,
                "javax.security.auth.login.LoginException: No LoginModule found for "
                "org.apache.kafka.common.security.plain.PlainLogin",
            ),
            Cause.BUG, LOGIN, "No LoginModule found for", id="a misspelt login module",
        ),
        pytest.param(
            CLIENT.format(MADE, f"{KAFKA}KafkaException: Failed to load SSL keystore /keys.jks of type JKS"),
            Cause.BUG, "correct kafka.ssl.*.location", "/keys.jks", id="a key file that is not there",
        ),
        pytest.param(
            DIED.format(f"{ERRORS}IllegalSaslStateException", "Unexpected handshake request with client mechanism"),
            Cause.BUG, "takes no login at this port: correct kafka.security.protocol", "Unexpected handshake",
            id="a login where none is wanted",
        ),
        pytest.param(
            DIED.format(ERRORS + "TimeoutException", "Timed out waiting for a node assignment. Call: describeTopics"),
            Cause.OUTAGE, "no Kafka broker answers: start it", "Timed out waiting for a node assignment",
            id="no broker, as the source sees it",
        ),
        pytest.param(
            DIED.format(ERRORS + "TimeoutException", "Topic out not present in metadata after 60000 ms."),
            Cause.OUTAGE, "the topic is not there or no Kafka broker answers: make the topic", "Topic out not present",
            id="no broker or no topic, as the sink sees it",
        ),
        pytest.param(
            DIED.format(ERRORS + "TimeoutException", "Topic out not present in metadata after 60000 ms.")
            + f"\nCaused by: {ERRORS}UnknownTopicOrPartitionException: This server does not host this topic-partition.",
            Cause.BUG, "the topic does not exist: make it", "does not host this topic-partition",
            id="no topic, as the sink sees it",
        ),
        pytest.param(
            DIED.format(
                "java.util.concurrent.TimeoutException", "Cannot fetch record for offset 5 in 120000 milliseconds"
            ),
            Cause.OUTAGE, "no Kafka broker answers: start it", "Cannot fetch record for offset 5",
            id="a broker that ended while records were read",
        ),
        pytest.param(
            DIED.format("java.lang.NoClassDefFoundError", "org/apache/kafka/common/serialization/ByteArraySerializer"),
            Cause.BUG, "the Kafka connector is missing: add", "org/apache/kafka/common", id="no jars beside it",
        ),
        pytest.param(
            DIED.format("java.lang.ClassNotFoundException", "org.apache.spark.sql.kafka010.KafkaSourceRDDPartition"),
            Cause.BUG, "and for executors too", "KafkaSourceRDDPartition", id="executors without the connector",
        ),
    ],
)  # fmt: skip
def test_exact_words_of_spark_and_kafka(text: str, cause: Cause, told: str, said: str) -> None:
    death = diagnose(text, 1.0, None, [])
    assert death.cause is cause
    assert told in death.text and said in death.text
    assert death.text.count("\n") == 0


# Of spark-common-utils 4.3.0, ``error/error-conditions.json``.
@pytest.mark.parametrize(
    "text",
    [
        "[KAFKA_DATA_SOURCE_NOT_ENABLED] Failed to find data source: kafka. Please deploy the application as per the "
        "deployment section of Structured Streaming + Kafka Integration Guide. SQLSTATE: 42K02",
        "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: Kafka. Make sure the provider name is correct and the "
        "package is properly registered and compatible with your Spark version. SQLSTATE: 42K02",
    ],
)
def test_no_connector_in_the_words_of_spark(text: str) -> None:
    found = kafka_error(text, has_run=True)
    assert found is not None and found.is_final and found.text.startswith("the Kafka connector is missing: add")
    assert "SQLSTATE" not in found.said


def test_the_connector_that_is_named_is_the_one_that_is_tested() -> None:
    assert CONNECTOR in [str(jar) for jar in pinned("kafka-connector")]


def test_other_sources_are_not_kafka() -> None:
    assert kafka_error("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafkaesque. Make", False) is None
    assert kafka_error("java.lang.NoClassDefFoundError: org/apache/commons/lang3/Thing", False) is None


def test_a_lost_executor_explains_an_error_of_kafka() -> None:
    assert diagnose(DIED.format(ERRORS + "TimeoutException", "x"), 1.0, 3, ["2"]).cause is Cause.LOST


def test_other_timeouts_are_not_of_kafka() -> None:
    death = diagnose(DIED.format("java.util.concurrent.TimeoutException", "x"), 1.0, 3, [])
    assert death.cause is Cause.OUTAGE
    assert "Kafka" not in death.text
