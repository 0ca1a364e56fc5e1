"""The jars of the broker and of Spark's Kafka connector, from the cache or from a Maven repository."""

from pathlib import Path

from barograph.engines.spark.cluster.java import find_java, spark_jars
from barograph.engines.spark.folders import cache_folder
from barograph.maven import Ivy, fetch, pinned


def broker_jars() -> tuple[Path, ...]:
    """FetchFailed where they cannot be had."""
    return _fetched("kafka-broker")


def connector_jars() -> tuple[Path, ...]:
    """For the class path, or for ``spark.jars``, of an application that reads or writes topics."""
    return _fetched("kafka-connector")


def _fetched(name: str) -> tuple[Path, ...]:
    return fetch(pinned(name), cache_folder() / "jars", lambda: Ivy.among(find_java().command, spark_jars()))
