"""What errors of Kafka's clients, and of Spark without its connector, mean for a user. Pure: it reads texts."""

import re
from dataclasses import dataclass

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"  # whose version --packages wants; as it is pinned
_CONNECTOR = f"the Kafka connector is missing: add {CONNECTOR} by --packages, or its jars by --jars"
_NEEDED = f"{_CONNECTOR}, with the jars that it needs (--packages adds them) and for executors too"
_LOGIN = (
    "the login for the Kafka broker is missing or not written as its clients want it: correct kafka.sasl.jaas.config "
    "and kafka.sasl.mechanism"
)
_MISSING = "the topic does not exist: make it, or correct the option subscribe or topic"
_SILENT = (
    "no Kafka broker answers: start it, or correct kafka.bootstrap.servers, or give the options for a login or TLS if "
    "it wants one"
)
_NAMED = re.compile(r"(?:org\.apache\.kafka\.common\.errors\.|^)(\w+Exception)\b")
# By the name of the exception; each is what is wrong and what to do.
_FINAL = {
    "SaslAuthenticationException": "the Kafka broker refuses the login: correct user and password in "
    "kafka.sasl.jaas.config",
    "SslAuthenticationException": "the Kafka broker and this client do not trust each other: correct kafka.ssl.*",
    "UnsupportedSaslMechanismException": "the Kafka broker has no such login: correct kafka.sasl.mechanism",
    "IllegalSaslStateException": "the Kafka broker takes no login at this port: correct kafka.security.protocol or "
    "kafka.bootstrap.servers",
    "TopicAuthorizationException": "the Kafka broker does not let this user read or write the topic: give it the right",
    "GroupAuthorizationException": "the Kafka broker does not let this user read with this group: set "
    "kafka.group.id or groupIdPrefix",
    "ClusterAuthorizationException": "the Kafka broker does not let this user write or make topics: give it the right",
    "InvalidTopicException": "the name of the topic is not valid: correct the option subscribe or topic",
    "TopicExistsException": "the topic is there already: choose another name",
}


@dataclass(frozen=True, slots=True)
class KafkaError:
    """text: what is wrong and what to do. is_final: it does not pass by itself. said: the words of Kafka or Spark."""

    text: str
    is_final: bool
    said: str = ""


# Errors that no exception of Kafka's own names: Spark's, Java's, and what a client says while it is being made, which
# is only the cause of "Failed to create new KafkaAdminClient" or "Failed to construct kafka producer".
_BY_WORDS = tuple(
    (re.compile(words), text, is_final)
    for words, text, is_final in (
        (r"Failed to find (?:the )?data source: (?i:kafka)\b[^\n]*", _CONNECTOR, True),
        (
            r"(?:NoClassDefFoundError|ClassNotFoundException): "
            r"org[./]apache[./](?:kafka|spark[./](?:sql[./])?kafka010|commons[./]pool2)[./][^\s]*",
            _NEEDED,
            True,
        ),
        (
            r"No resolvable bootstrap urls given in bootstrap\.servers",
            "no host in kafka.bootstrap.servers has an address: correct the names, or see that they can be resolved",
            False,
        ),
        (
            r"Invalid (?:url|port) in bootstrap\.servers[^\n]*",
            "a Kafka broker is not written as HOST:PORT: correct kafka.bootstrap.servers",
            True,
        ),
        (r"(?:[A-Z][^:\n]*)?\bJAAS config[^\n]*", _LOGIN, True),
        (r"No LoginModule found for [^\n]*", _LOGIN, True),
        (
            r"Failed to load SSL keystore [^\n]*",
            "a file with keys or certificates for Kafka cannot be read: correct kafka.ssl.*.location and its password, "
            "and put the file on every machine that has executors",
            True,
        ),
    )
)
_UNSEEN = re.compile(r"[Tt]opic \S+ (?:with partition count \d+ is )?not present in metadata after \d+ ms")
_NO_TOPIC_OR_BROKER = (
    "the topic is not there or no Kafka broker answers: make the topic, or correct the option topic, or start the "
    "broker, or correct kafka.bootstrap.servers"
)
_NO_RECORD = re.compile(r"Cannot fetch record for offset \d+ in \d+ milliseconds")


def kafka_error(text: str, has_run: bool) -> KafkaError | None:
    """None where it is no such error. has_run: a topic that was there may be unknown to a broker that just starts."""
    for pattern, meaning, is_final in _BY_WORDS:
        if found := pattern.search(text):
            return KafkaError(meaning, is_final, _plain(found[0]))
    names = _NAMED.findall(text)
    for name in names:
        if name in _FINAL:
            return KafkaError(_FINAL[name], True, _words_of(name, text))
    if "UnknownTopicOrPartitionException" in names:
        return KafkaError(_MISSING, not has_run, _words_of("UnknownTopicOrPartitionException", text))
    if found := _UNSEEN.search(text):
        return KafkaError(_NO_TOPIC_OR_BROKER, False, _plain(found[0]))
    if found := _NO_RECORD.search(text):
        return KafkaError(_SILENT, False, _plain(found[0]))
    return KafkaError(_SILENT, False, _words_of("TimeoutException", text)) if "TimeoutException" in names else None


def _words_of(name: str, text: str) -> str:
    """What the exception says itself; its name where it says nothing."""
    found = re.search(rf"\b{name}: ([^\n]+)", text)
    return _plain(found[1]) if found else name


def _plain(words: str) -> str:
    """Without what Spark puts behind it."""
    return " ".join(words.partition(" SQLSTATE")[0].partition("\tat ")[0].split())
