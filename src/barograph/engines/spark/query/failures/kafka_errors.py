"""What errors of Kafka's clients, and of Spark without its connector, mean for a user. Pure: it reads texts."""

import re
from dataclasses import dataclass

_NO_CONNECTOR = re.compile(r"Failed to find data source: kafka\b", re.IGNORECASE)
_NAMED = re.compile(r"(?:org\.apache\.kafka\.common\.errors\.|^)(\w+Exception)\b")
# By the name of the exception; each is what is wrong and what to do.
_FINAL = {
    "SaslAuthenticationException": "the Kafka broker refuses the login: correct user and password in "
    "kafka.sasl.jaas.config",
    "SslAuthenticationException": "the Kafka broker and this client do not trust each other: correct kafka.ssl.*",
    "UnsupportedSaslMechanismException": "the Kafka broker has no such login: correct kafka.sasl.mechanism",
    "TopicAuthorizationException": "the Kafka broker does not let this user read or write the topic: give it the right",
    "GroupAuthorizationException": "the Kafka broker does not let this user read with this group: set "
    "kafka.group.id or groupIdPrefix",
    "ClusterAuthorizationException": "the Kafka broker does not let this user write or make topics: give it the right",
    "InvalidTopicException": "the name of the topic is not valid: correct the option subscribe or topic",
    "TopicExistsException": "the topic is there already: choose another name",
}
_MISSING = "the topic does not exist: make it, or correct the option subscribe or topic"
_SILENT = (
    "no Kafka broker answers: start it, or correct kafka.bootstrap.servers, or give the options for a login or TLS if "
    "it wants one"
)


@dataclass(frozen=True, slots=True)
class KafkaError:
    """text: what is wrong and what to do. is_final: it does not pass by itself."""

    text: str
    is_final: bool


def kafka_error(text: str, has_run: bool) -> KafkaError | None:
    """None where it is no such error. has_run: a topic that was there may be unknown to a broker that just starts."""
    if _NO_CONNECTOR.search(text):
        what = "the Kafka connector is missing: add org.apache.spark:spark-sql-kafka-0-10_2.13 by --packages or --jars"
        return KafkaError(what, is_final=True)
    names = _NAMED.findall(text)
    for name in names:
        if name in _FINAL:
            return KafkaError(_FINAL[name], is_final=True)
    if "UnknownTopicOrPartitionException" in names:
        return KafkaError(_MISSING, is_final=not has_run)
    return KafkaError(_SILENT, is_final=False) if "TimeoutException" in names else None
