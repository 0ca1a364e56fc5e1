"""Properties as spark-submit reads them."""

from pathlib import Path

import pytest

from barograph.config.written.properties import (
    conf_folder,
    parse_properties,
    properties_of,
    settings_of_words,
    spark_defaults,
)
from barograph.model import BadInput

TEXT = r"""
# a comment
! another
spark.jars   a.jar,\
             b.jar
spark.plugins=their.Plugin
spark.app.name: a name with spaces
  spark.master local[2]
spark.empty
path\ with\ spaces = C:\\folder\ttab
umlaut = \u00fc
"""


def test_each_way_to_write_an_entry() -> None:
    assert parse_properties(TEXT) == {
        "spark.jars": "a.jar,b.jar", "spark.plugins": "their.Plugin", "spark.app.name": "a name with spaces",
        "spark.master": "local[2]", "spark.empty": "", "path with spaces": "C:\\folder\ttab", "umlaut": "ü",
    }  # fmt: skip


def test_the_defaults_of_spark_are_those_of_its_folder(tmp_path: Path) -> None:
    assert spark_defaults(tmp_path) == {}
    (tmp_path / "spark-defaults.conf").write_text("spark.a one\n")
    assert spark_defaults(tmp_path) == {"spark.a": "one"}


def test_words_of_a_command_line_are_read_as_spark_submit_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "own.conf"
    file.write_text("spark.a file\nspark.b file\n")
    words = ["--verbose", "--conf", "spark.b=x=y", "--name", "n", "--conf=spark.c=z", "pyspark-shell"]
    assert settings_of_words(words, {"spark.a": "default"}) == {"spark.a": "default", "spark.b": "x=y", "spark.c": "z"}
    words = ["--master=yarn", "-c", "spark.master=local", "--properties-file", str(file), "pyspark-shell"]
    assert settings_of_words(words, {"spark.d": "default"}) == {
        "spark.a": "file", "spark.b": "file", "spark.master": "yarn",
    }  # fmt: skip


def test_the_folder_of_the_user_comes_first() -> None:
    given = {"SPARK_CONF_DIR": "/etc/spark", "SPARK_HOME": "/opt/spark"}
    assert conf_folder(Path("/ours"), given) == Path("/etc/spark")
    assert conf_folder(Path("/ours"), {"SPARK_HOME": "/opt/spark"}) == Path("/opt/spark/conf")
    assert conf_folder(Path("/ours"), {}) == Path("/ours/conf")


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.conf cannot be read: No such file"):
        properties_of(tmp_path / "none.conf")
    (tmp_path / "latin.conf").write_bytes(b"spark.app.name \xfc")
    with pytest.raises(BadInput, match="not UTF-8"):
        properties_of(tmp_path / "latin.conf")
