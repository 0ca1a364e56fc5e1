"""What the doctor finds, and that it leaves nothing behind."""

import json
from pathlib import Path

import pytest

from barograph.cli.main import main
from barograph.engines.spark import health
from barograph.engines.spark.conf import PLUGIN_JAR


def test_everything_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--format", "json"])
    found = {f["name"]: f for f in json.loads(capsys.readouterr().out)}
    assert set(found) >= {"python", "java", "spark", "plug-in", "control groups", "cores", "memory", "ports"}
    assert found["python"]["ok"]
    assert all(f["advice"] for f in found.values() if not f["ok"])


def test_a_missing_essential_is_reported_with_advice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("barograph.engines.spark.conf.PLUGIN_JAR", Path("/nowhere/x.jar"))
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "MISSING  plug-in" in said
    assert "-> run make" in said


def test_a_missing_option_is_only_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "make_groups", lambda *_: "no rights")
    finding = next(f for f in health.examine() if f.name == "control groups")
    assert (finding.ok, finding.essential, finding.found) == (False, False, "no rights")


def test_conf_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    if not PLUGIN_JAR.exists():
        pytest.skip("the plug-in is not built")
    main(["conf", "--format", "json"])
    settings = json.loads(capsys.readouterr().out)
    assert settings["spark.plugins"] == "org.apache.spark.barograph.BarographPlugin"
    main(["conf", "--format", "properties"])
    assert dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines()) == settings
    main(["conf"])
    words = capsys.readouterr().out.split()
    assert words[::2] == ["--conf"] * len(settings)
    assert dict(w.split("=", 1) for w in words[1::2]) == settings
