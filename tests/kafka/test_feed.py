"""A producer that ends too early is a reason in words, whenever that is."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.polling import until

from barograph.kafka import feed as feed_module
from barograph.kafka.feed import start_feed


def program(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands for the JVM of the producer."""
    command = folder / "java"
    command.write_text(f"#!/bin/sh\n{text}\n")
    command.chmod(0o700)
    monkeypatch.setattr(feed_module, "find_java", lambda: SimpleNamespace(command=command))
    for name in ("connector_jars", "spark_jars"):
        monkeypatch.setattr(feed_module, name, lambda: ())
    monkeypatch.setattr(feed_module, "plugin_jar", lambda: Path("plugin.jar"))


def test_a_producer_that_ended_before_the_load_began_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "echo ready; echo 'feed: OutOfMemoryError: heap' >&2; exit 1", monkeypatch)
    with start_feed("t", "h:1", {}, {}) as feed:
        feed.await_ready()
        until(lambda: bool(feed.failed()))
        feed.begin(1000)
        assert feed.failed() == "OutOfMemoryError: heap"


def test_a_producer_is_told_when_the_load_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "echo ready; read start; [ $start = 1000 ] && echo done; cat", monkeypatch)
    with start_feed("t", "h:1", {}, {}) as feed:
        feed.await_ready()
        assert not feed.is_done()
        feed.begin(1000)
        until(feed.is_done)
        assert feed.failed() == ""
