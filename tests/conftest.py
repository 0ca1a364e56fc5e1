"""Settings for all tests."""

from pathlib import Path

import pytest
from hypothesis import settings

from barograph.engines.spark.folders import STATE_VARIABLE

pytest_plugins = ["tests.time_limit", "tests.times"]

# How long one example takes depends on what else the machine does; speed is measured in bench/.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder for each test, so that no test sees clusters that run on this machine for something else."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
