"""Folders of our own: what another user could have prepared is refused."""

import os
from pathlib import Path

import pytest

from barograph.engines.spark.folders import CACHE_VARIABLE, STATE_VARIABLE, cache_folder, state_folder
from barograph.model import BadInput


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "place"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "place"))
    return tmp_path / "place"


def refused() -> None:
    for find in (state_folder, cache_folder):
        with pytest.raises(BadInput, match="it must be a folder of your own that no other user can write to"):
            find()


def test_a_new_folder_is_for_its_owner_only(place: Path) -> None:
    before = os.umask(0)
    try:
        assert state_folder() == place
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o777 == 0o700


def test_a_link_to_a_folder_is_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    refused()


def test_a_folder_that_others_can_write_to_is_refused(place: Path) -> None:
    place.mkdir()
    place.chmod(0o770)
    refused()


def test_a_folder_of_another_user_is_refused(place: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder to another user")
    place.mkdir(mode=0o700)
    os.chown(place, 65534, 65534)
    refused()
