"""The plug-in's local file system for checkpoints does what Hadoop's does, so that checkpoints move between them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from barograph.engines.spark.session import open_session
from barograph.testing.local_cluster import with_testing_jar

pytestmark = pytest.mark.spark
KEY = "fs.AbstractFileSystem.file.impl"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = open_session("files", with_testing_jar(), {"spark.master": "local[2]", "spark.driver.host": "127.0.0.1"})
    yield session
    session.stop()


def files(spark: SparkSession, folder: Path, quick: bool) -> Any:
    """Spark's checkpoint file manager for a folder, on one of the two file systems."""
    jvm: Any = spark._jvm
    conf = jvm.org.apache.hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
    assert conf.get(KEY) == "org.apache.spark.barograph.QuickLocalFs"
    if not quick:
        conf.set(KEY, "org.apache.hadoop.fs.local.LocalFs")
    path = jvm.org.apache.hadoop.fs.Path(f"file:{folder}")
    manager = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create(path, conf)
    assert manager.getClass().getSimpleName() == "FileContextBasedCheckpointFileManager"
    return manager


def write(spark: SparkSession, manager: Any, file: Path, content: bytes) -> None:
    jvm: Any = spark._jvm
    out = manager.createAtomic(jvm.org.apache.hadoop.fs.Path(f"file:{file}"), False)
    out.write(content)
    out.close()


def test_files_are_the_same(spark: SparkSession, tmp_path: Path) -> None:
    for quick in (True, False):
        folder = tmp_path / str(quick)
        manager = files(spark, folder, quick)
        manager.mkdirs(spark._jvm.org.apache.hadoop.fs.Path(f"file:{folder}/below"))  # type: ignore[union-attr]
        write(spark, manager, folder / "below" / "0", b"offsets")
    ours, hadoops = (sorted(p for p in (tmp_path / q).rglob("*")) for q in ("True", "False"))
    assert [p.relative_to(tmp_path / "True") for p in ours] == [p.relative_to(tmp_path / "False") for p in hadoops]
    assert {p.name for p in ours} == {"below", "0", ".0.crc"}
    for one, other in zip(ours, hadoops, strict=True):
        assert one.stat().st_mode == other.stat().st_mode
        assert one.is_dir() or one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("quick", [True, False])
def test_what_one_wrote_the_other_reads_and_does_not_overwrite(
    spark: SparkSession, tmp_path: Path, quick: bool
) -> None:
    file = tmp_path / "3"
    write(spark, files(spark, tmp_path, quick), file, b"first")
    other = files(spark, tmp_path, not quick)
    path = spark._jvm.org.apache.hadoop.fs.Path(f"file:{file}")  # type: ignore[union-attr]
    stream = other.open(path)
    assert bytes(stream.readAllBytes()) == b"first"
    stream.close()
    with pytest.raises(Exception, match="FileAlreadyExistsException"):
        write(spark, other, file, b"second")
    assert file.read_bytes() == b"first"
