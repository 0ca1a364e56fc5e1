"""A real Kafka broker for tests and demonstrations, and Spark's Kafka connector. Both are fetched when first used."""

from barograph.kafka.broker import Broker, Login, start_broker
from barograph.kafka.fetched import broker_jars, connector_jars

__all__ = ["Broker", "Login", "broker_jars", "connector_jars", "start_broker"]
