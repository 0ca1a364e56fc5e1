"""What the doctor says of a process's ports."""

from pathlib import Path

import pytest

from barograph.engines.spark.health import Finding
from barograph.engines.spark.security import ports, processes
from barograph.engines.spark.security.driver_uses import BLOCKS, JAVA_GATEWAY, RPC, WEB_PAGE, DriverUses, KnownPort
from barograph.engines.spark.security.port_findings import port_findings
from barograph.engines.spark.security.ports import ListeningPort
from barograph.engines.spark.security.processes import OwnProcess
from barograph.engines.spark.security.secret import DAEMONS_FILE, make_secret

OWN, NETWORK = (ListeningPort(7, address, 4000) for address in ("127.0.0.2", "10.0.0.1"))
WIDE, PAGE = ListeningPort(7, "::", 35001), ListeningPort(7, "0.0.0.0", 4040)
MASTER = "spark://127.0.0.1:7077"


@pytest.fixture(autouse=True)
def usual_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel chooses ports from its usual range, whatever it is on this machine."""
    monkeypatch.setattr(ports, "_PROC", tmp_path)


def findings(role: str, *words: str, ports: tuple[ListeningPort, ...] = (OWN,), guarded: bool = False) -> list[Finding]:
    return list(port_findings(OwnProcess(7, role, words, ports, guarded), frozenset({MASTER})))


def test_a_port_without_a_secret_is_open() -> None:
    (found,) = findings("master", "--host", "127.0.0.2")
    assert not found.ok
    assert found.essential
    assert found.found == "127.0.0.2:4000: open to this machine, WITHOUT a secret"
    (found,) = findings("driver", ports=(NETWORK,))
    assert "open to the network" in found.found


def test_every_way_to_a_secret_is_known(tmp_path: Path) -> None:
    make_secret(tmp_path)
    for role in ("master", "worker"):
        assert findings(role, "--properties-file", str(tmp_path / DAEMONS_FILE))[0].ok
    assert findings("executor", "-Dspark.authenticate=true")[0].ok
    assert findings("driver", "--conf", "spark.authenticate=true")[0].ok
    assert findings("driver", "--conf", f"spark.master={MASTER}")[0].ok
    assert findings("driver", "--master", MASTER)[0].ok
    (tmp_path / "java").write_text("spark.authenticate=TRUE\n")  # as YARN writes it
    assert findings("driver", "--properties-file", str(tmp_path / "java"))[0].ok
    (tmp_path / "other").write_text("spark.authenticate false\n")
    assert not findings("worker", "--properties-file", str(tmp_path / "other"))[0].ok
    assert not findings("worker", "--properties-file")[0].ok
    assert not findings("worker", "--properties-file", str(tmp_path / "none"))[0].ok
    assert not findings("driver", "--conf", "spark.master=spark://elsewhere:7077")[0].ok


@pytest.mark.parametrize("role", ["master", "worker"])
def test_the_web_page_of_a_master_or_worker_needs_a_filter(role: str, tmp_path: Path) -> None:
    (tmp_path / "settings").write_text("spark.authenticate true\n")
    given = ("--properties-file", str(tmp_path / "settings"))
    (found,) = findings(role, *given, ports=(OWN, ListeningPort(7, "127.0.0.2", 8080)))
    assert (found.ok, "its web page WITHOUT a filter" in found.found) == (False, True)
    assert "spark.ui.filters" in found.advice
    (found,) = findings(role, "-Dspark.ui.filters=org.apache.spark.ui.JWSFilter", *given, ports=(OWN, PAGE))
    assert (found.ok, "0.0.0.0:4040: open to the network, with a secret" in found.found) == (True, True)


def test_ports_of_executors_on_every_interface_are_the_shuffles_where_nothing_else_explains_them() -> None:
    secret = "-Dspark.authenticate=true"
    (found,) = findings("executor", secret, ports=(WIDE,))
    assert (found.ok, "every interface" in found.found) == (False, True)
    assert [f.ok for f in findings("executor", secret, ports=(OWN, WIDE), guarded=True)] == [True, True]
    (blocks,) = findings("executor", ports=(WIDE,), guarded=True)
    assert (blocks.ok, "block transfer among them WITHOUT a secret" in blocks.found) == (False, True)
    assert findings("executor", secret, ports=(WIDE,), guarded=True)[0].ok
    fixed = ListeningPort(7, "::", 7079)
    assert findings("executor", secret, ports=(fixed, WIDE), guarded=True)[0].ok, "spark.blockManager.port"
    _, more = findings("executor", secret, ports=(OWN, fixed, WIDE), guarded=True)
    assert (more.ok, more.essential, "it is not known" in more.found) == (False, True, True)
    (two,) = findings("executor", secret, ports=(OWN, NETWORK), guarded=True)
    assert (two.ok, "it is not known" in two.found) == (False, True)
    assert not findings("worker", ports=(WIDE,), guarded=True)[0].ok


@pytest.mark.parametrize("ports", [(PAGE, WIDE), (WIDE,)])
def test_what_a_driver_that_was_not_asked_opens_on_every_interface_is_not_known(
    ports: tuple[ListeningPort, ...],
) -> None:
    (found,) = findings("driver", "spark.authenticate=true", ports=ports, guarded=True)
    assert (found.ok, found.essential, "it is not known" in found.found) == (False, True, True)


def test_a_driver_that_was_not_asked_has_no_more_ports_than_spark_needs() -> None:
    three = tuple(ListeningPort(7, "127.0.0.2", port) for port in (4001, 4002, 4040))

    def found(*words: str, ports: tuple[ListeningPort, ...] = three) -> bool:
        (told,) = findings("driver", "spark.authenticate=true", *words, ports=ports, guarded=True)
        return told.ok

    assert found(ports=three[:2])
    assert not found("app.jar")
    assert not found("--py-files", "more.py", "app.jar")
    assert found("app.py") and found("pyspark-shell"), "the Java gateway"
    assert found(processes.DRIVER_WRAPPER, "app.jar")


@pytest.mark.parametrize(
    ("port", "ok", "text"),
    [
        (KnownPort(4040, WEB_PAGE, ""), False, "0.0.0.0:4040 (web page): open to the network, WITHOUT a filter"),
        (KnownPort(4040, WEB_PAGE, "a filter"), True, "0.0.0.0:4040 (web page): open to the network, with a filter"),
        (KnownPort(4040, RPC, ""), False, "0.0.0.0:4040 (RPC): open to the network, WITHOUT a secret"),
        (KnownPort(4040, BLOCKS, "a secret"), True, "with a secret"),
        (KnownPort(4040, JAVA_GATEWAY, "a token"), True, "with a token"),
    ],
)
def test_a_driver_says_which_port_is_the_shuffles(port: KnownPort, ok: bool, text: str) -> None:
    told = DriverUses(6, (), (), (), 7, (port,))
    opened = ListeningPort(7, "0.0.0.0", 9999)
    process = OwnProcess(7, processes.DRIVER, (), (opened, PAGE, WIDE), guarded=True)
    known, shuffle, other = port_findings(process, frozenset(), told)
    assert (known.ok, known.essential, text in known.found) == (ok, True, True)
    assert (shuffle.ok, "(35001): rows only for readers with a proof" in shuffle.found) == (True, True)
    assert (other.ok, other.essential, "9999 (opened by the program)" in other.found) == (False, False, True)


@pytest.mark.parametrize("role", [processes.MASTER, processes.WORKER, processes.EXECUTOR, processes.DRIVER])
def test_a_process_that_must_listen_and_shows_no_port_is_not_known(role: str) -> None:
    (found,) = findings(role, ports=())
    assert (found.ok, found.essential, "its ports are not known" in found.found) == (False, True, True)


BROKER_SETTINGS = """\
# a comment
listeners=IN://127.0.0.2:4000,OUT://10.0.0.1:4001
listener.security.protocol.map=IN:SASL_PLAINTEXT,OUT:PLAINTEXT
"""


def test_each_listener_of_a_broker_is_told(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(BROKER_SETTINGS)
    (tmp_path / "other").write_text(BROKER_SETTINGS.replace("OUT:PLAINTEXT", "OUT:SASL_SSL"))

    def told(*words: str) -> list[tuple[bool, str]]:
        given = OwnProcess(7, processes.BROKER, ("java", "kafka.Kafka", *words), (OWN, JMX), folder=tmp_path)
        return [(f.ok, f.found) for f in port_findings(given, frozenset())]

    asked = (True, "127.0.0.2:4000 (listener IN): open to this machine, with a login")
    jmx = (False, "10.0.0.1:5000 (not a listener of its settings): open to the network, WITHOUT a login")
    assert told("server.properties") == [asked, jmx]
    (ok, found), _ = told("server.properties", "--override", "listener.security.protocol.map=IN:PLAINTEXT")
    assert (ok, "WITHOUT a login" in found) == (False, True)
    assert [ok for ok, _ in told("missing")] == [False]


JMX = ListeningPort(7, "10.0.0.1", 5000)


def test_what_the_python_of_a_driver_opens_is_told_by_the_driver() -> None:
    ports = (OWN, ListeningPort(7, "127.0.0.1", 4001), ListeningPort(7, "127.0.0.1", 4002))
    known = (KnownPort(4000, "accumulators", "a token"), KnownPort(4001, "calls from Java", ""))
    told = DriverUses(7, (), (), known, 8, ())
    process = OwnProcess(7, processes.PYTHON_OF_DRIVER, ("python",), ports)
    token, calls, other = port_findings(process, frozenset(), told)
    assert (token.ok, token.found.endswith("with a token")) == (True, True)
    assert (calls.ok, calls.essential, "WITHOUT a token" in calls.found) == (False, True, True)
    assert (other.ok, other.essential, "opened by the program" in other.found) == (False, False, True)
    (alone,) = port_findings(OwnProcess(7, processes.PYTHON_OF_DRIVER, ("python",), (OWN,)), frozenset())
    assert alone.ok, "a driver without Barograph has the port for accumulators"
    assert [f.ok for f in port_findings(process, frozenset())] == [False] * 3


@pytest.mark.parametrize("role", [processes.FEED, processes.BROKER, processes.PYTHON_OF_DRIVER, processes.LAUNCHER])
def test_a_process_without_a_port_is_told(role: str) -> None:
    (found,) = port_findings(OwnProcess(7, role, ("java",), ()), frozenset())
    assert (found.name, found.ok, found.found) == (f"ports of {role} 7", True, "listens on no port")


def test_pythons_of_executors_ask_for_a_token_if_they_are_of_spark() -> None:
    for module, ok in (("pyspark.daemon", True), ("http.server", False)):
        given = OwnProcess(7, processes.PYTHON_OF_EXECUTOR, ("python3", "-m", module), (OWN,))
        assert [f.ok for f in port_findings(given, frozenset())] == [ok]
