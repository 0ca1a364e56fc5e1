"""What other users can do with a folder."""

from pathlib import Path

import pytest

from barograph.engines.spark.security.folder_rights import folder_finding, place_finding


def test_a_folder_is_open_if_others_can_enter_it_and_read_something(open_folder: Path) -> None:
    folder = open_folder / "state"
    folder.mkdir(mode=0o700)
    (folder / "log").touch(mode=0o644)
    assert folder_finding("files", folder).ok
    folder.chmod(0o755)
    found = folder_finding("files", folder)
    assert (found.ok, found.advice) == (False, f"chmod 700 {folder}")
    assert "log" in found.found
    (folder / "log").chmod(0o600)
    assert folder_finding("files", folder).ok


def test_what_is_behind_a_closed_folder_is_not_open(open_folder: Path) -> None:
    inner = open_folder / "closed" / "open"
    inner.mkdir(parents=True)
    (inner / "log").touch(mode=0o644)
    (open_folder / "closed").chmod(0o700)
    assert folder_finding("files", inner).found == f"{inner}: only the owner of {open_folder}/closed can enter"
    found = folder_finding("files", open_folder)
    assert found.ok, "nor is it from above"


def test_a_folder_in_one_to_which_others_can_write_can_be_replaced(open_folder: Path) -> None:
    folder = open_folder / "checkpoint"
    folder.mkdir(mode=0o700)
    open_folder.chmod(0o777)
    found = folder_finding("files", folder)
    assert (found.ok, "other users can put another" in found.found) == (False, True)
    open_folder.chmod(0o1777)
    assert folder_finding("files", folder).ok, "as in the temporary folder"


@pytest.mark.parametrize("how", ["{}", "file:{}", "file://{}"])
def test_a_place_is_a_path_or_a_url(how: str, open_folder: Path) -> None:
    (open_folder / "log").touch(mode=0o644)
    assert not place_finding("history", how.format(open_folder)).ok
    assert place_finding("history", how.format(open_folder / "not-there-yet")).ok
    assert "not on this machine" in place_finding("history", "s3://bucket/history").found
