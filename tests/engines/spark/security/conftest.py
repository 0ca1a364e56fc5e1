"""A folder that other users can enter, unlike those of pytest: what is in it is protected by its own rights only."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="barograph-open-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)
