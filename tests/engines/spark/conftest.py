"""Each test here has its own state folder, so that clusters of other people on this machine are not seen."""

from pathlib import Path

import pytest

from barograph.engines.spark.folders import STATE_VARIABLE


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
