"""Later sources win, and each value says where it came from."""

from dataclasses import fields
from pathlib import Path

import pytest

from barograph.config import OPTIONS, resolve
from barograph.control.guards import Guards
from barograph.control.node_pool import Upkeep
from barograph.control.quiet_moments import Quiet
from barograph.engines.epoch_length import Recovery
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.query_options import QueryOptions


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


FILE = """\
# a comment
cycle = "5s"
in-flight = "300ms"
enforce = "off"

[guards]
cooldown = "1m"  # a minute
cuts-per-hour = "unlimited"

[query]
level = 3
"""


def test_nothing_is_set() -> None:
    config = resolve()
    assert set(config.origins.values()) == {"default"}
    assert {name: config[name] for name in OPTIONS} == {name: o.default for name, o in OPTIONS.items()}
    assert config.spark_settings() == {}


def test_the_file_of_the_working_directory() -> None:
    Path("barograph.toml").write_text(FILE, encoding="utf-8")
    config = resolve()
    assert (config["cycle"], config["in-flight"], config["enforce"]) == (5.0, 0.3, "off")
    assert (config["guards.cooldown"], config["guards.cuts-per-hour"]) == (60.0, None)
    assert [config.place(n) for n in ("cycle", "guards.cooldown", "query.level", "mode")] == [
        "barograph.toml:2", "barograph.toml:7", "barograph.toml:11", "default",
    ]  # fmt: skip


def test_later_sources_win() -> None:
    Path("mine.toml").write_text(FILE, encoding="utf-8")
    conf = {"spark.barograph.inFlightMs": "100", "spark.barograph.cycle": "3s", "spark.master": "local"}
    config = resolve(Path("mine.toml"), conf, {"cycle": "1s"}, {"query.level": 1, "query.desired-nodes": None})
    assert [(config[n], config.place(n)) for n in ("cycle", "in-flight", "query.level", "enforce")] == [
        (1.0, "--cycle"), (0.1, "spark.barograph.inFlightMs"), (1, "level"), ("off", "mine.toml:4"),
    ]  # fmt: skip
    assert not config.is_set("query.desired-nodes")


def test_groups_and_inline_tables_are_the_same() -> None:
    Path("a.toml").write_text('guards = { cooldown = "5s" }\nnodes.spare = 0\n', encoding="utf-8")
    config = resolve(Path("a.toml"))
    assert (config["guards.cooldown"], config.place("guards.cooldown")) == (5.0, "a.toml:1")
    assert (config["nodes.spare"], config.place("nodes.spare")) == (0, "a.toml:2")


def test_a_group_has_the_fields_of_the_value_that_holds_it() -> None:
    config = resolve()
    holders = {
        "guards": Guards, "quiet": Quiet, "nodes": Upkeep, "restart": RestartLimits, "query": QueryOptions,
        "cluster": ClusterSettings,
    }  # fmt: skip
    for group, kind in holders.items():
        assert set(config.fields(group)) - {"memory_mb"} == {f.name for f in fields(kind)} - {"memory_mb"}, group
        kind(**config.fields(group))
    assert {*config.fields("epochs"), "recovery_s"} == {f.name for f in fields(Recovery)}


def test_options_of_queries_go_to_spark_as_they_are_read_there() -> None:
    Path("barograph.toml").write_text(FILE + 'minimum-nodes = 1\n[restart]\npatience = "2m"\n', encoding="utf-8")
    settings = resolve().spark_settings()
    assert settings == {
        "spark.barograph.enforce": "off", "spark.barograph.inFlightMs": "300", "spark.barograph.query.level": "3",
        "spark.barograph.query.minimumNodes": "1", "spark.barograph.restart.patience": "120s",
    }  # fmt: skip
    Path("barograph.toml").unlink()
    again = resolve(spark=settings)
    assert (again["in-flight"], again["query.level"], again["restart.patience"]) == (0.3, 3, 120.0)


def test_a_contradiction_of_another_command_does_not_matter() -> None:
    Path("barograph.toml").write_text("[run]\nnode-cpu = [0.6, 0.3]\n", encoding="utf-8")
    assert resolve(command="cluster up")["cluster.nodes"] == 3
    assert resolve(flags={"cluster.nodes": "2"}, command="run")["run.node-cpu"] == (0.6, 0.3)
