"""``barograph config``: what is in force, what is wrong, what there is; and that commands go by the file."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from barograph.cli.main import main
from barograph.cli.run import configure as run_flags
from barograph.config import OPTIONS
from barograph.experiments.run_settings import RunSettings
from barograph.experiments.running import killable_driver
from barograph.experiments.running.warm_up import RunFailed


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["config", "show", "--format", "json", *arguments]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def test_show_tells_each_value_and_its_origin(capsys: pytest.CaptureFixture[str]) -> None:
    Path("barograph.toml").write_text('[nodes]\nrelease-after = "never"\n', encoding="utf-8")
    rows = shown(capsys, "--conf", "spark.barograph.inFlightMs=50")
    assert set(rows) == set(OPTIONS)
    assert rows["nodes.release-after"] == {
        "name": "nodes.release-after", "value": None, "shown": "never", "origin": "barograph.toml:2",
    }  # fmt: skip
    assert (rows["in-flight"]["value"], rows["in-flight"]["origin"]) == (0.05, "spark.barograph.inFlightMs")
    assert rows["cycle"]["origin"] == "default"
    assert main(["config", "show"]) == 0
    assert "nodes.release-after       never " in capsys.readouterr().out


def test_check(capsys: pytest.CaptureFixture[str]) -> None:
    Path("good.toml").write_text('cycle = "5s"\n', encoding="utf-8")
    assert main(["config", "check", "good.toml"]) == 0
    assert capsys.readouterr().out == "good.toml: 1 option is right\n"
    Path("bad.toml").write_text('\ncylce = "5s"\n', encoding="utf-8")
    assert main(["config", "check", "bad.toml"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "barograph config: bad.toml:2: there is no option 'cylce': write cycle\n")


def test_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "reference"]) == 0
    assert capsys.readouterr().out.startswith("# Which options are there?")


def test_conf_prints_what_the_file_sets_for_queries(capsys: pytest.CaptureFixture[str]) -> None:
    Path("barograph.toml").write_text('in-flight = "1s"\nquery.level = 1\n', encoding="utf-8")
    assert main(["conf", "--format", "json"]) == 0
    settings = json.loads(capsys.readouterr().out)
    assert settings["spark.barograph.inFlightMs"] == "1000"
    assert settings["spark.barograph.query.level"] == "1"


FLAGS = {
    "--nodes", "--node-cpu", "--seats", "--executors", "--port", "--seconds", "--load", "--parallelism", "--busy",
    "--epoch", "--checkpoint", "--master", "--at", "--drain", "--timeout", "--in-flight", "--policy", "--option",
    "--theta", "--migration", "--share", "--like", "--recovery", "--cycle", "--mode", "--enforce", "--history",
    "--release-after", "--spare-nodes", "--format",
}  # fmt: skip


def test_run_keeps_its_flags() -> None:
    parser = argparse.ArgumentParser()
    run_flags(parser)
    assert set(parser._option_string_actions) >= FLAGS


def settings_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> RunSettings:
    """What a run would be started with."""
    found: list[RunSettings] = []

    def take(settings: RunSettings, *_: object) -> None:
        found.append(settings)
        raise RunFailed("not run")

    monkeypatch.setattr(killable_driver, "run_it", take)
    assert main(["run", "wordcount", *arguments]) == 1
    return found[0]


def test_run_without_anything_has_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(monkeypatch, "--policy", "adaptive")
    assert settings.steering is not None
    assert (settings.steering.cycle_s, settings.steering.release_after_s, settings.steering.recovery_s) == (2, 60, 30)
    cluster = settings.cluster
    assert (cluster.nodes, cluster.node_cpu, cluster.seats, cluster.executors, cluster.memory_mb) == (
        3,
        0.6,
        8,
        1,
        1024,
    )
    assert (settings.seconds, settings.epoch_s, settings.drain_s, settings.timeout_s) == (60, 60, 120, 30)
    assert (settings.in_flight_s, settings.conf, settings.query) == (0.2, {}, None)


def test_run_goes_by_the_file_then_keys_then_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine.toml").write_text(
        'policy = "adaptive"\ncycle = "4s"\nrecovery = "off"\noptions = ["theta_pct=7"]\n'
        '[nodes]\nrelease-after = "9s"\nfill = 70\n[guards]\ncooldown = "3s"\n[quiet]\nmost-wait = "8s"\n'
        '[epochs]\nmost = "50s"\n[cluster]\nnodes = 2\n[query]\nlevel = 1\n[restart]\nin-a-row = 4\n',
        encoding="utf-8",
    )
    settings = settings_of(
        monkeypatch, "--config", "mine.toml", "--conf", "spark.barograph.nodes.spare=0", "--cycle", "3s"
    )
    steering = settings.steering
    assert steering is not None
    inside = steering.config(Path(), Path()).settings()
    assert (inside.cycle_s, inside.upkeep.release_after_s, inside.upkeep.spare, inside.upkeep.fill_pct) == (3, 9, 0, 70)
    assert (inside.guards.cooldown_s, inside.quiet.most_wait_s, inside.recovery.most_s) == (3, 8, 50)
    assert steering.recovery_s is None and steering.options == {"theta_pct": 7}
    assert settings.cluster.nodes == 2 and settings.restart.in_a_row == 4
    assert settings.query is not None and settings.query.level == 1
    assert settings.conf["spark.barograph.query.level"] == "1"


def test_a_value_that_needs_a_policy_names_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    Path("barograph.toml").write_text("theta = 5\n", encoding="utf-8")
    assert main(["run", "wordcount"]) == 2
    assert "barograph.toml:1: theta needs a policy" in capsys.readouterr().err
