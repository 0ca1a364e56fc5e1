"""Another user of the machine against a program under ``barograph submit`` with a query: nothing of its driver can be
used, read or changed, also where the shell gives the files of its programs to everyone."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.spark.security.another_user import attacker, entered, refusals, tried_by_another_user
from tests.submit.test_submitted_script import SCRIPT, Submitted, submitted, topologies

from barograph.engines.spark.folders import state_folder
from barograph.engines.spark.query.checkpoint import last_committed_epoch
from barograph.engines.spark.security.ports import listening

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.limit(1200)]
NO_ENDPOINT = "Cannot find endpoint"  # as an RPC answers that lets the asker in

PROGRAM = """
import json, os, runpy, sys
from pathlib import Path
from pyspark import StorageLevel
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(1000).repartition(2).persist(StorageLevel.DISK_ONLY).count()
java = spark._jvm.java.lang
pids = [os.getpid(), java.ProcessHandle.current().pid()]
told = {"pids": pids, "temporary": java.System.getProperty("java.io.tmpdir")}
new = Path("told.new")
new.write_text(json.dumps(told))
new.replace("told.json")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def no_mask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def running(program: Submitted, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[list[int], Path]:
    """When it has committed an epoch and is steered: its processes, and its folder for temporary files."""
    program.settle(lambda: bool(last_committed_epoch(folder / "checkpoint")) and bool(topologies(capsys)), 900.0)
    told = json.loads((folder / "told.json").read_text())
    return told["pids"], Path(told["temporary"])


def assert_ports_refuse(pids: list[int], words: Path) -> None:
    """words: a folder that other users can enter."""
    ports = listening(pids)
    assert {port.pid for port in ports} == set(pids)
    # On every interface are only writers of the shuffle, which give rows to readers with a proof.
    assert [port for port in ports if not port.loopback and port.address not in ("::", "0.0.0.0")] == []
    places = sorted({("127.0.0.1" if not p.loopback else p.address.removeprefix("::ffff:"), p.port) for p in ports})
    with attacker() as stranger:
        for address, port in places:
            stranger.give(address=address, port=port)
        found = stranger.end()["ports"]
    connected = [port for port in found if port["connected"]]
    assert len(connected) >= 3  # RPC, blocks, and PySpark's own
    assert [port for port in connected if port["rows"] or port["java"] or port["http"]] == []
    asked = [f"look {address} {port} Worker" for address, port in places]
    said = dict(zip(asked, refusals(words, asked), strict=True))
    assert {what: answer for what, answer in said.items() if answer == "" or NO_ENDPOINT in answer} == {}


@pytest.mark.usefixtures("no_mask")
@pytest.mark.parametrize("where", ["own cluster", "local"])
def test_nothing_of_a_submitted_program_is_open(where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    words = tmp_path / "words"
    words.mkdir()
    options = ["--master", "local[8]"] if where == "local" else ["--nodes", "1"]
    options += ["--workloads", "--conf", "spark.sql.shuffle.partitions=2", "app.py"]
    with submitted(tmp_path, *options, str(SCRIPT), "checkpoint") as program:
        pids, temporary = running(program, tmp_path, capsys)
        with entered(words):
            assert_ports_refuse(pids, words)
        state = state_folder()
        assert temporary.is_relative_to(state)
        places = {temporary, *state.rglob("*")}
        names = {re.sub("-.*", "", place.name) for place in places}
        assert {"blockmgr", "artifacts", "spark", "submit", "controller"} <= names
        if where == "local":
            assert any(place.name.startswith("rdd_") for place in places), "rows that are kept on the driver's disk"
        else:
            checkpoint = tmp_path / "checkpoint"
            places |= {checkpoint, *checkpoint.rglob("*")}
            assert any("/state/0/" in str(place) for place in places), "rows that the query remembers"
        with entered(state, tmp_path / "checkpoint"):
            # Files that were removed meanwhile cannot be used either.
            assert tried_by_another_user(places) == {}
        program.end()
        assert not temporary.exists()
