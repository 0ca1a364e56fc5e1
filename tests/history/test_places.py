"""A history at an address of s3 is as one in a folder: written, read, listed, replayed; and what is wrong is said."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.history.s3_service import S3Service, s3_service
from tests.history.test_history import Clock, decided

from barograph.cli.main import main
from barograph.control.recorded_decisions import RecordedDecisions
from barograph.history import Recorder, entries, gaps
from barograph.history.files import parts
from barograph.history.places import RemotePath, place_of
from barograph.history.writer_claim import HOLDS_S, NAME
from barograph.model import BadInput


@pytest.fixture(scope="module")
def service() -> Iterator[S3Service]:
    with s3_service() as opened:
        yield opened


@pytest.fixture
def bucket(service: S3Service, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    name = request.node.name.replace("_", "-")[:60].rstrip("-")
    service.make_bucket(name)
    return str(name)


def recorder(place: str, clock: Clock | None = None, **more: object) -> Recorder:
    clock = clock or Clock()
    given = {"clock": clock, "passed": lambda: clock.now_s, **more}
    return Recorder(place_of(place), "adaptive", "act", **given)  # type: ignore[arg-type]  # by name


def test_what_is_recorded_in_a_bucket_is_read_back_merged_and_bounded(service: S3Service, bucket: str) -> None:
    place = service.place(bucket)
    history = recorder(place, together=4)
    written = [history.record(cycle) for cycle in decided(6)]
    found = place_of(place)
    assert [(p.first, p.last) for p in parts(found)] == [(1, 4), (5, 5), (6, 6)]
    assert list(entries(found)) == written
    history.close()
    again = recorder(place, Clock(), most_mb=1e-6)
    again.record(decided(1)[0])
    assert [p.first for p in parts(found)] == [8], "only the newest file is kept"
    again.close()
    assert isinstance(found, RemotePath)
    assert not (found / NAME).exists(), "its claim is given back"


@pytest.mark.slow  # three seconds of the two minutes that unit tests may take
def test_commands_read_it(service: S3Service, bucket: str, capsys: pytest.CaptureFixture[str]) -> None:
    place = service.place(bucket, "a/b")
    history = recorder(place)
    for cycle in decided():
        history.record(cycle)
    assert main(["history", place, "--format", "json"]) == 0
    assert [json.loads(line)["number"] for line in capsys.readouterr().out.splitlines()] == [1, 2, 3, 4, 5]
    assert main(["replay", place, "--policy", "adaptive", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["recorded"]["policy"] == "adaptive"
    assert gaps(place_of(place)) == []
    assert [d.number for d in RecordedDecisions(place_of(place)).new()] == [1, 2, 3, 4, 5], (
        "as barograph decisions does"
    )


def test_there_is_one_writer(service: S3Service, bucket: str) -> None:
    """On this machine a writer that has died is known at once; one elsewhere has a time to come back."""
    place, clock = service.place(bucket), Clock()
    history = recorder(place, clock)
    with pytest.raises(BadInput, match=f"another controller records into .*: process {os.getpid()} on "):
        recorder(place, clock)
    claim = place_of(place) / NAME
    assert isinstance(claim, RemotePath)
    mine = json.loads(claim.read())
    claim.write(json.dumps({**mine, "host": "elsewhere", "id": "other"}).encode())
    with pytest.raises(BadInput, match="on elsewhere; if that is gone, the claim ends 300 s after its last entry"):
        recorder(place, clock)
    clock.now_s += 30
    history.record(decided(1)[0])
    assert len(history.held()) == 1, "it found the other's claim and writes no more"
    clock.now_s = mine["until_s"] + HOLDS_S
    recorder(place, clock).close()
    code = (
        "import os; from barograph.history import Recorder; from barograph.history.places import place_of; "
        f"Recorder(place_of({place!r}), 'p', 'act'); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert claim.exists()
    recorder(place).close()


def test_a_service_that_is_down_for_a_while_costs_no_entry(
    service: S3Service, bucket: str, caplog: pytest.LogCaptureFixture
) -> None:
    place, clock = service.place(bucket), Clock()
    history = recorder(place, clock)
    written = [history.record(decided(1)[0])]
    service.stop()
    try:
        with caplog.at_level(logging.WARNING):
            written += [history.record(cycle) for cycle in decided(3)]
    finally:
        service.start()
    assert len(history.held()) == 3
    (said,) = [r.getMessage() for r in caplog.records if "cannot be written" in r.getMessage()]
    assert "the service cannot be reached" in said
    clock.now_s += 60
    written.append(history.record(decided(1)[0]))
    assert list(entries(place_of(place))) == written


def test_a_clock_that_is_set_back_delays_neither_writing_nor_the_claim(service: S3Service, bucket: str) -> None:
    place, clock, passed = service.place(bucket), Clock(), Clock()
    history = recorder(place, clock, passed=lambda: passed.now_s)
    service.stop()
    try:
        history.record(decided(1)[0])
    finally:
        service.start()
    clock.now_s -= 3600
    passed.now_s += 60
    history.record(decided(1)[0])
    assert history.held() == ()
    claim = place_of(place) / NAME
    assert isinstance(claim, RemotePath)
    until_s = json.loads(claim.read())["until_s"]
    assert until_s == pytest.approx(clock.now_s + HOLDS_S, abs=60), "renewed, by the clock that others see"


BAD = {
    "gs://bucket/seen": "a history can be in a folder, at s3://BUCKET/FOLDER or hdfs://HOST/FOLDER, not at",
    "s3:///seen": "names no bucket: write s3://BUCKET/FOLDER",
    "s3://me:secret@bucket/seen": "give credentials by AWS_ACCESS_KEY_ID",
    "s3://bucket/seen?endpoint=x": "endpoint is unknown; there are endpoint_override, region, scheme",
    "hdfs://127.0.0.1:9000/seen": "a history on HDFS needs libhdfs, which is not found: set ARROW_LIBHDFS_DIR",
    "s3://bucket/seen?endpoint_override=127.0.0.1:9&scheme=http": "the service cannot be reached: check its address",
}


@pytest.mark.parametrize(("place", "said"), BAD.items())
def test_bad_addresses_are_refused_in_one_sentence(
    place: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ARROW_LIBHDFS_DIR", "HADOOP_HOME", "CLASSPATH"):
        monkeypatch.delenv(name, raising=False)
    for command in (
        ["history", place],
        ["replay", place],
        ["run", "wordcount", "--policy", "adaptive", "--history", place],
    ):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1


def test_a_bucket_that_is_missing_and_credentials_that_are_wrong_are_said(
    service: S3Service, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", "wordcount", "--policy", "adaptive", "--history"]
    assert main([*asked, service.place("no-such-bucket")]) == 2
    assert "there is no bucket no-such-bucket: create it, or name another" in capsys.readouterr().err
    assert main(["history", service.place(bucket)]) == 2
    assert "there is no history in" in capsys.readouterr().err
    service.check_credentials(True)
    try:
        assert main([*asked, service.place(bucket, more="&region=eu-west-1")]) == 2
        assert "the service refuses these credentials: set AWS_ACCESS_KEY_ID" in capsys.readouterr().err
    finally:
        service.check_credentials(False)


def test_folders_and_file_addresses_are_paths(tmp_path: Path) -> None:
    assert place_of(f"file://{tmp_path}") == tmp_path
    assert place_of("seen/here") == Path("seen/here")
    assert str(place_of("s3://bucket/a/b?region=x")) == "s3://bucket/a/b?region=x"
