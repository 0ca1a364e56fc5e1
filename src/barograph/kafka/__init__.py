"""A real Kafka broker for tests and demonstrations, and Spark's Kafka connector. Both are fetched when first used."""

from barograph.kafka.broker import Broker, start_broker
from barograph.kafka.fetched import broker_jars, connector_jars

__all__ = ["Broker", "broker_jars", "connector_jars", "start_broker"]
