"""Folders for the logs of commands."""

import os

import pytest

from barograph.engines.spark import log_folder
from barograph.engines.spark.folders import state_folder
from barograph.engines.spark.log_folder import SPARK, end_of, new_log_folder


def test_only_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_folder, "KEPT", 3)
    every = state_folder() / "logs"
    for age, name in enumerate(["run-d", "run-c", "run-b", "run-a"]):
        (every / name).mkdir(parents=True)
        os.utime(every / name, (1000 - age, 1000 - age))
    made = new_log_folder("run")
    assert {p.name for p in every.iterdir()} == {made.name, "run-d", "run-c"}
    assert made.name.startswith("run-") and not any(made.iterdir())


def test_the_end_is_shown_with_its_file() -> None:
    folder = new_log_folder("run")
    assert end_of(folder) == "", "Spark was not started"
    (folder / SPARK).write_text("".join(f"line {n}\n" for n in range(100)))
    first, *_, last = end_of(folder).splitlines()
    assert first == f"the end of {folder / SPARK}:" and last == "line 99"
    assert "line 0\n" not in end_of(folder)
