"""The settings of a run: where its logs are, and which brokers answer."""

import socket
from pathlib import Path

from barograph.experiments.run_settings import RunSettings, answers
from barograph.model import Load
from barograph.workloads import registry


def test_where_the_logs_are_is_said_by_the_first_driver_only(tmp_path: Path) -> None:
    said: list[str] = []
    settings = RunSettings(registry.workload("wordcount"), Load.parse("constant 100"), logs=tmp_path)
    for _ in range(2):
        log = settings.spark_log(said.append)
        assert log == tmp_path / "spark.log"
        log.touch()
    assert said == [f"logs are in {tmp_path}"]
    silent = RunSettings(registry.workload("wordcount"), Load.parse("constant 100"))
    assert silent.spark_log(said.append) is None and len(said) == 1


def test_a_broker_behind_a_comma_and_a_space_answers_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert [answers(a) for a in f"127.0.0.1:1, 127.0.0.1:{port}".split(",")] == [False, True]
    assert not answers("") and not answers("127.0.0.1")
