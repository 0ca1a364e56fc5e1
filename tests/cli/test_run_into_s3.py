"""``barograph run --history s3://...`` on a real cluster: the controller records there, and the report reads it."""

import json
from pathlib import Path

import pytest

from barograph.cli.main import main
from barograph.history.places import place_of
from barograph.history.read import entries
from tests.history.s3_service import s3_service


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_records_into_a_bucket(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    with s3_service() as service:
        service.make_bucket("runs")
        place = service.place("runs", "wordcount")
        words = ["--load", "constant 200", "--seconds", "20", "--policy", "adaptive", "--history", place]
        assert main(["run", "wordcount", "--nodes", "2", *words, "--format", "json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["rows"]["lost"] == report["rows"]["counted_twice"] == 0
        found = [e for e in entries(place_of(place)) if e.cycle is not None]
        assert len(found) > 3
        assert main(["history", place, "--all", "--format", "json"]) == 0
        assert len(capsys.readouterr().out.splitlines()) >= len(found)
        assert main(["history", place, "--sql", "select count(*) n from cycles", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["n"] >= len(found)
