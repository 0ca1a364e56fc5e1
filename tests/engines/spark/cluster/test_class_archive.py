"""An archive is used when it is there and belongs to this Java and this Spark; a real one is made and used."""

from pathlib import Path

import pytest

from barograph.engines.spark.cluster import class_archive
from barograph.engines.spark.cluster.embedded import make_archive, start_cluster
from barograph.engines.spark.cluster.java import Java, find_java
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.folders import CACHE_VARIABLE


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))


def some_java(tmp_path: Path, name: str) -> Java:
    command = tmp_path / name / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.touch()
    return Java(tmp_path / name, tmp_path / name, 17)


def test_an_archive_is_used_only_once_it_is_in_place_and_by_its_own_java(tmp_path: Path) -> None:
    one, two = some_java(tmp_path, "one"), some_java(tmp_path, "two")
    options, unfinished = class_archive.write_archive(one)
    assert f"-XX:ArchiveClassesAtExit={unfinished}" in options
    assert not class_archive.keep(one, unfinished)
    unfinished.touch()
    assert class_archive.use_archive(one) == ()
    assert class_archive.keep(one, unfinished)
    assert f"-XX:SharedArchiveFile={class_archive.archive_of(one)}" in class_archive.use_archive(one)
    assert class_archive.use_archive(two) == ()


@pytest.mark.spark
@pytest.mark.slow
def test_a_real_archive_is_made_and_used() -> None:
    assert make_archive() == bool(list(find_java().runtime.rglob("classes.jsa")))
    with start_cluster(ClusterSettings(1)) as cluster:
        assert [n.alive for n in cluster.status()] == [True]
        maps = Path(f"/proc/{cluster.status()[0].pids[0]}/maps").read_text()
        assert (str(class_archive.archive_of(find_java())) in maps) == bool(class_archive.use_archive(find_java()))
