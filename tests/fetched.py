"""Tests that need what is fetched from a repository when it is first used: jars of Kafka, of YARN and of JUnit."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from barograph.kafka import broker_jars, connector_jars
from barograph.maven import FetchFailed


@contextmanager
def needs_fetched() -> Iterator[None]:
    """A test is skipped where the block cannot fetch something. Where ``CI`` is set, as systems that run tests
    unattended do, it fails: a skip would hide for ever that these tests do not run."""
    try:
        yield
    except FetchFailed as error:
        if os.environ.get("CI"):
            pytest.fail(f"{error} (without CI in the environment, the test is skipped)")
        pytest.skip(str(error))


def needs_kafka() -> None:
    with needs_fetched():
        broker_jars()
        connector_jars()
