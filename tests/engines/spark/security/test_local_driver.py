"""A driver of one's own, as Spark makes it, and its Python: what the doctor says, and what another user gets."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import java_gateway
from tests.engines.spark.security.another_user import attacker

from barograph.engines.spark.cluster.java import java_home
from barograph.engines.spark.folders import CACHE_VARIABLE, STATE_VARIABLE
from barograph.engines.spark.security.callbacks import guard_callbacks

pytestmark = pytest.mark.spark


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A JVM of its own, beside that of other tests."""
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    monkeypatch.setattr(java_gateway, "ensure_callback_server_started", java_gateway.ensure_callback_server_started)
    made: Any = java_gateway.launch_gateway()  # type: ignore[no-untyped-call]
    yield made
    made.shutdown()
    made.proc.stdin.close()
    made.proc.wait(timeout=60)


class Supplier:
    """Called by Java."""

    called = 0

    def get(self) -> str:
        self.called += 1
        return "the owner's"

    class Java:
        implements = ("java.util.function.Supplier",)


def test_no_other_user_calls_a_function_that_java_calls(gateway: Any) -> None:
    guard_callbacks()
    guard_callbacks()  # once is enough
    java_gateway.ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    java_gateway.ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # as with the next query
    supplier = Supplier()

    def called_by_java() -> str:
        return str(gateway.jvm.java.util.Optional.empty().orElseGet(supplier))

    assert called_by_java() == "the owner's"
    (name,) = [key for key, kept in gateway.gateway_property.pool.dict.items() if kept is supplier]
    with attacker() as stranger:
        port = vars(gateway)["_callback_server"].port
        stranger.give(address="127.0.0.1", port=port, call=f"{name} get")
        stranger.give(address="127.0.0.1", port=port, call=f"A {'0' * 64}")
        answers = stranger.end()["calls"]
    assert [answer for answer in answers if "owner" in answer or answer.startswith("!y")] == []
    assert supplier.called == 1
    assert called_by_java() == "the owner's"


OPEN_DRIVER = """
import json
from dataclasses import asdict
from pyspark.sql import SparkSession
import barograph
from barograph.engines.spark.driver.application import supervisor_of_session
from barograph.engines.spark.security.exposure import exposed

builder = SparkSession.builder.appName("open").master("local[2]")
builder = builder.config("spark.ui.enabled", "true").config("spark.authenticate", "false")
spark = barograph.configure(builder).getOrCreate()
supervisor_of_session()
pid = spark._jvm.java.lang.ProcessHandle.current().pid()
print(json.dumps([asdict(f) for f in exposed() if f.name == f"ports of driver {pid}"]))
spark.stop()
"""


def test_the_web_page_of_a_guarded_driver_is_open(tmp_path: Path) -> None:
    """With Spark's own settings, which a program may have: it listens on every interface, as the ports do that the
    plug-in guards."""
    folders = {STATE_VARIABLE: str(tmp_path / "state"), CACHE_VARIABLE: str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", OPEN_DRIVER], env={**os.environ, **folders}, cwd=tmp_path, stdout=subprocess.PIPE,
        text=True, check=True, timeout=300,
    )  # fmt: skip
    found = {re.findall(r"\((.+?)\)", f["found"])[0]: f for f in json.loads(done.stdout.splitlines()[-1])}
    assert {use: f["ok"] for use, f in found.items()} == {
        "web page": False, "RPC": False, "block transfer": False, "Java gateway": True,
    }  # fmt: skip
    page = found["web page"]
    assert page["essential"] and page["found"].startswith((":::", "0.0.0.0:")) and "WITHOUT a filter" in page["found"]
