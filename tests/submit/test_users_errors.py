"""Errors of Spark that end a program: those that its user can mend are one sentence, all others a traceback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from barograph.engines.spark.cluster.processes import python_environment
from barograph.model import BadInput
from barograph.submit import launcher
from barograph.submit.jvm_program import _told
from barograph.submit.users_errors import sentence_for

# Spark's exceptions ask whether there is a JVM when they are made.
SCRIPT = """
from pyspark import SparkContext
from pyspark.errors.exceptions.captured import AnalysisException, StreamingQueryException
SparkContext._jvm = SparkContext._gateway = object()
def begin():
    raise {0}(desc={1!r}, stackTrace={2!r})
begin()
"""
FAILED = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: {} SQLSTATE: XXKST"
STACK = (
    "org.apache.spark.sql.streaming.StreamingQueryException: x\n\tat org.apache.spark.A.b(A.scala:1)\nCaused by: {}\n"
)
ERRORS = "org.apache.kafka.common.errors."
MISSING = (
    "[KAFKA_DATA_SOURCE_NOT_ENABLED] Failed to find data source: kafka. Please deploy the application as per the guide."
)
CASES = {
    "connector missing": ("AnalysisException", MISSING, "", "connector is missing: add"),
    "topic missing": (
        "StreamingQueryException",
        FAILED.format(f"{ERRORS}UnknownTopicOrPartitionException: This server does not host this topic-partition."),
        "", "the topic does not exist: make it",
    ),
    "wrong credentials": (
        "StreamingQueryException",
        FAILED.format(f"{ERRORS}SaslAuthenticationException: Authentication failed: Invalid username or password"),
        "", "correct user and password in kafka.sasl.jaas.config",
    ),
    "no broker": (
        "StreamingQueryException",
        FAILED.format(f"{ERRORS}TimeoutException: Timed out waiting for a node assignment. Call: describeTopics"),
        "", "no Kafka broker answers: start it",
    ),
    "no such host, told only by the cause": (
        "StreamingQueryException", FAILED.format("Failed to create new KafkaAdminClient"),
        STACK.format(
            "org.apache.kafka.common.config.ConfigException: No resolvable bootstrap urls given in bootstrap.servers"
        ),
        "no host in kafka.bootstrap.servers has an address",
    ),
}  # fmt: skip


def launched(folder: Path, script: str) -> "subprocess.CompletedProcess[str]":
    (folder / "app.py").write_text(script)
    options = json.dumps({"mode": "advise", "policy": "", "usual": "adaptive"})
    return subprocess.run(
        [sys.executable, launcher.__file__, options, "app.py"], cwd=folder, env=python_environment(),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "desc", "stack", "told"), CASES.values(), ids=CASES.keys())
def test_bad_input_is_one_sentence_that_says_what_to_do(
    tmp_path: Path, kind: str, desc: str, stack: str, told: str
) -> None:
    done = launched(tmp_path, SCRIPT.format(kind, desc, stack))
    assert done.returncode == 1
    assert done.stderr.startswith("barograph submit: ") and told in done.stderr
    assert done.stderr.endswith(" (app.py, line 7)\n") and done.stderr.count("\n") == 1, done.stderr


def test_any_other_error_of_spark_keeps_its_traceback(tmp_path: Path) -> None:
    done = launched(tmp_path, SCRIPT.format("StreamingQueryException", FAILED.format("/ by zero"), ""))
    assert done.stderr.startswith("Traceback (most recent call last):") and "line 6, in begin" in done.stderr


def test_an_error_of_the_program_itself_is_not_explained() -> None:
    assert sentence_for(ValueError(f"{ERRORS}TimeoutException: mine")) == ""
    assert sentence_for(BadInput("the file is not there: make it")) == "the file is not there: make it"


def test_an_application_in_scala_gets_the_same_sentence() -> None:
    text = STACK.format(f"{ERRORS}UnknownTopicOrPartitionException: This server does not host this topic-partition.")
    assert _told(text) == (
        "barograph submit: the topic does not exist: make it, or correct the option subscribe or topic (This server "
        "does not host this topic-partition)"
    )
    other = STACK.format("java.lang.ArithmeticException: / by zero")
    assert _told(other) == f'Exception in thread "main" {other}'
