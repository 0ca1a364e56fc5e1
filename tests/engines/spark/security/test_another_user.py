"""Another user of the machine against the ports of a running cluster with a query: none gives anything, and nothing
that is sent to one ends the query."""

import base64
import hashlib
import hmac
import re
from pathlib import Path

import pytest
from pyspark import java_gateway
from tests.engines.spark.security.another_user import Attacker, attacker, driver_pids, every_pid, refusals

from barograph.engines.spark.health import Finding
from barograph.engines.spark.security.exposure import exposed
from barograph.engines.spark.security.ports import listening
from barograph.engines.spark.security.secret import DAEMONS_FILE, read_secret
from barograph.testing.local_cluster import LocalCluster, RunningQuery

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("state")]
EPOCHS = 4
NO_ENDPOINT = "Cannot find endpoint"


def test_no_port_gives_a_row_runs_a_call_or_ends_the_query(shared_stage: LocalCluster, running: RunningQuery) -> None:
    first = running.epoch()
    tried: set[tuple[str, int]] = set()
    with attacker() as stranger:
        # The shuffle's ports are new in each epoch, and a stranger may come before the reader does.
        def attacked() -> bool:
            attack_new(shared_stage, stranger, tried)
            return running.epoch() >= first + EPOCHS

        running.settle(attacked, 120, 0.01)
        found = stranger.end()
    assert len(tried) > 4 * EPOCHS
    connected = [port for port in found["ports"] if port["connected"]]
    assert len(connected) > 2 * EPOCHS
    assert [port for port in connected if port["rows"] or port["java"]] == []
    pages = [port for port in connected if port["http"]]
    assert len(pages) >= 4  # of the master and three workers
    assert [port for port in pages if any("403" not in status for status in port["http"])] == []
    out, then = running.output(), running.epoch()
    running.settle(lambda: running.output() > out and running.epoch() > then + 1)


def attack_new(stage: LocalCluster, stranger: Attacker, tried: set[tuple[str, int]]) -> None:
    for port in listening(every_pid(stage)):
        place = ("127.0.0.1" if port.address in ("::", "0.0.0.0") else port.address, port.port)
        if place not in tried:
            tried.add(place)
            stranger.give(address=place[0], port=place[1])


def test_no_port_takes_another_user_for_one_of_its_own_and_no_master_takes_a_program(
    shared_stage: LocalCluster, running: RunningQuery, open_folder: Path
) -> None:
    """Every port of every process: one whose RPC answers a stranger would say that it has no such endpoint."""
    secret = read_secret(shared_stage.cluster.run.folder)["spark.authenticate.secret"]
    conf = shared_stage.spark.sparkContext.getConf()
    master = shared_stage.cluster.master.removeprefix("spark://").replace(":", " ")
    driver = f"{conf.get('spark.driver.host')} {conf.get('spark.driver.port')}"
    known = [f"submit {master}", f"look {master} Master", f"look {driver} CoarseGrainedScheduler"]
    ports = sorted(
        f"look {'127.0.0.1' if p.address in ('::', '0.0.0.0') else p.address} {p.port} Worker"
        for p in set(listening(every_pid(shared_stage)))
    )
    assert len(ports) >= 10  # RPC and pages of the master and three workers, RPC and blocks of the driver
    every = [*known, *ports]
    given = ("", " " + "0" * len(secret), " " + secret)
    answers = iter(refusals(open_folder, [what + key for key in given for what in every]))
    without, guessed, owner = ({what: next(answers) for what in every} for _ in given)
    assert [owner[what] for what in known] == [""] * 3, "it knows how to do it"
    spoken = {what for what, said in owner.items() if what in ports and (said == "" or NO_ENDPOINT in said)}
    assert len(spoken) >= 5, owner  # the RPC of master, workers and driver, which know the owner
    for refused in (without, guessed):
        assert {what: said for what, said in refused.items() if said == "" or NO_ENDPOINT in said} == {}
    assert running.query.isActive


def token(key: str) -> str:
    """A signed token for the web pages, which only the owner of the key can make."""
    parts = [base64.urlsafe_b64encode(p).rstrip(b"=") for p in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"owner"}')]
    signature = hmac.new(base64.urlsafe_b64decode(key), b".".join(parts), hashlib.sha256).digest()
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


def test_web_pages_are_for_the_owner_only(shared_stage: LocalCluster) -> None:
    run = shared_stage.cluster.run
    ports = {"master": run.web.rsplit(":", 1)[1]}
    for name in run.settings.node_names():
        log = (run.folder / "logs" / f"{name}.log").read_text()
        ports[name] = re.findall(r"Successfully started service 'WorkerUI' on port (\d+)", log)[-1]
    hosts = {"master": "127.0.0.1", **run.settings.addresses()}
    key = dict(line.split(" ", 1) for line in (run.folder / DAEMONS_FILE).read_text().splitlines())[
        "spark.org.apache.spark.ui.JWSFilter.param.secretKey"
    ]
    with attacker() as stranger:
        for name, port in ports.items():
            stranger.give(address=hosts[name], page=port, token="")
            stranger.give(address=hosts[name], page=port, token=token(base64.urlsafe_b64encode(b"x" * 32).decode()))
        stranger.give(address=hosts["master"], page=ports["master"], token=token(key))
        found = stranger.end()["pages"]
    let_in = [statuses for _, _, statuses in found if any("200" in s for s in statuses)]
    assert len(found) == 2 * len(ports) + 1
    assert len(let_in) == 1  # the owner
    refused = {status for _, _, statuses in found if statuses not in let_in for status in statuses}
    assert refused == {"HTTP/1.1 403"}


def test_the_doctor_tells_every_port_of_the_driver(shared_stage: LocalCluster, running: RunningQuery) -> None:
    python, jvm = driver_pids(shared_stage)

    def told(name: str) -> dict[str, Finding]:
        return {f.found: f for f in exposed() if f.name == f"ports of {name}"}

    shared_stage.supervisor.serve()
    (accumulators,) = [f for text, f in told(f"Python of driver {python}").items() if "for accumulators" in text]
    assert (accumulators.ok, "this machine" in accumulators.found) == (True, True)
    driver = told(f"driver {jvm}")
    assert {re.findall(r"\((.+)\)", text)[0] for text in driver} == {"RPC", "block transfer", "Java gateway"}
    assert all(f.ok for f in driver.values())
    gateway = shared_stage.spark.sparkContext._gateway
    assert gateway is not None
    # As foreachBatch and Python listeners do.
    java_gateway.ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    try:
        (calls,) = [f for text, f in told(f"Python of driver {python}").items() if "for calls from Java" in text]
        assert (calls.ok, calls.found.endswith("with a token")) == (True, True)
    finally:
        gateway.shutdown_callback_server()
        vars(gateway)["_callback_server"] = None
    assert running.query.isActive


def test_the_query_has_counted_every_row_once(running: RunningQuery) -> None:
    assert running.verdict().exact
