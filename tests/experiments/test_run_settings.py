"""The settings of a run: where its logs are."""

from pathlib import Path

from barograph.experiments.run_settings import RunSettings
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
