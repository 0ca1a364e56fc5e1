"""What the settings of a broker say that its listeners ask for."""

from pathlib import Path

import pytest

from barograph.engines.spark.security.broker_listeners import Listener, listeners

CASES = {
    "nothing is set": ("", [Listener("PLAINTEXT", 9092, "")]),
    "names that are protocols": (
        "listeners=SASL_SSL://:1,SSL://h:2,PLAINTEXT://[::1]:3",
        [Listener("SASL_SSL", 1, "a login"), Listener("SSL", 2, ""), Listener("PLAINTEXT", 3, "")],
    ),
    "certificates of clients": ("listeners=SSL://:1\nssl.client.auth=required", [Listener("SSL", 1, "a certificate")]),
    "certificates for one listener": (
        "listeners=A://:1,B://:2\nlistener.security.protocol.map=A:SSL, B:ssl\n"
        "listener.name.b.ssl.client.auth=required",
        [Listener("A", 1, ""), Listener("B", 2, "a certificate")],
    ),
    "no protocol": (
        "listeners=A://:1\nlistener.security.protocol.map=B:SASL_SSL",
        [Listener("A", 1, "")],
    ),
}


@pytest.mark.parametrize(("settings", "expected"), CASES.values(), ids=CASES)
def test_what_listeners_ask_for(settings: str, expected: list[Listener], tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(settings)
    assert list(listeners(("java", "kafka.Kafka", "server.properties"), tmp_path)) == expected
