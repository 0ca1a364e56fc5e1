"""The secret of a cluster: another one each time, in files that only the owner reads."""

import os
from pathlib import Path

import pytest

from barograph.engines.spark.cluster import launch, runs
from barograph.engines.spark.cluster.embedded import EmbeddedCluster
from barograph.engines.spark.cluster.java import Java
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.folders import STATE_VARIABLE
from barograph.engines.spark.security.secret import DAEMONS_FILE, SECRET_FILE, make_secret, read_secret


def test_only_the_owner_can_read_it_whatever_the_mask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_secret(tmp_path)
    finally:
        os.umask(before)
    assert {p.name: p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {SECRET_FILE: 0o600, DAEMONS_FILE: 0o600}


def test_each_cluster_has_its_own(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        make_secret(folder)
        found.append(read_secret(folder))
    assert all(settings["spark.authenticate"] == "true" for settings in found)
    assert all(len(settings["spark.authenticate.secret"]) == 64 for settings in found)
    assert found[0]["spark.authenticate.secret"] != found[1]["spark.authenticate.secret"]


def test_a_driver_with_the_file_is_closed_and_only_a_driver(tmp_path: Path) -> None:
    make_secret(tmp_path)
    lines = {file: set((tmp_path / file).read_text().splitlines()) for file in (SECRET_FILE, DAEMONS_FILE)}
    closing = {
        "spark.ui.enabled false", "spark.driver.host 127.0.0.1", "spark.driver.bindAddress 127.0.0.1",
        "spark.hadoop.fs.permissions.umask-mode 077",
    }  # fmt: skip
    assert closing < lines[SECRET_FILE]
    assert not closing & lines[DAEMONS_FILE]
    keys = {f"{key} {value}" for key, value in read_secret(tmp_path).items()}
    assert keys == lines[SECRET_FILE] - closing, "what holds also where executors are on other machines"
    assert keys < lines[DAEMONS_FILE]


def test_a_file_or_link_that_is_there_already_is_refused(tmp_path: Path) -> None:
    (tmp_path / SECRET_FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        make_secret(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_cluster_without_a_secret_has_no_settings(tmp_path: Path) -> None:
    assert read_secret(tmp_path) == {}


def test_commands_and_environments_of_daemons_name_the_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    run = runs.claim(ClusterSettings(nodes=1), "quiet")
    launch.prepare(run)
    secret = read_secret(run.folder)["spark.authenticate.secret"]
    java = Java(Path("/java"), Path("/java"), 17)
    for started in (launch.master_launch(run, java), launch.worker_launch(run, java, "node-1")):
        assert str(run.folder / DAEMONS_FILE) in started.command
        assert secret not in str(started)


def test_checkpoints_of_applications_are_for_their_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    run = runs.claim(ClusterSettings(nodes=1), "quiet")
    conf = EmbeddedCluster(run, Java(Path("/java"), Path("/java"), 17)).session_conf()
    assert conf["spark.hadoop.fs.permissions.umask-mode"] == "077"
