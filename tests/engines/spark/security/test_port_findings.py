"""What the doctor says of a process's ports."""

from pathlib import Path

import pytest

from barograph.engines.spark.health import Finding
from barograph.engines.spark.security import processes
from barograph.engines.spark.security.driver_uses import DriverUses, PythonPort
from barograph.engines.spark.security.port_findings import port_findings
from barograph.engines.spark.security.ports import ListeningPort
from barograph.engines.spark.security.processes import OwnProcess
from barograph.engines.spark.security.secret import DAEMONS_FILE, make_secret

OWN, NETWORK, WIDE = (ListeningPort(7, address, 4000) for address in ("127.0.0.2", "10.0.0.1", "::"))
MASTER = "spark://127.0.0.1:7077"


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
    assert findings("worker", "--properties-file", str(tmp_path / DAEMONS_FILE))[0].ok
    assert findings("executor", "-Dspark.authenticate=true")[0].ok
    assert findings("driver", "--conf", "spark.authenticate=true")[0].ok
    assert findings("driver", "--conf", f"spark.master={MASTER}")[0].ok
    (tmp_path / "other").write_text("spark.authenticate false\n")
    assert not findings("worker", "--properties-file", str(tmp_path / "other"))[0].ok
    assert not findings("worker", "--properties-file")[0].ok
    assert not findings("driver", "--conf", "spark.master=spark://elsewhere:7077")[0].ok


def test_ports_on_every_interface_are_open_without_the_plugin() -> None:
    (found,) = findings("executor", "-Dspark.authenticate=true", ports=(WIDE,))
    assert (found.ok, "every interface" in found.found) == (False, True)
    assert findings("executor", ports=(WIDE,), guarded=True)[0].ok
    assert not findings("worker", ports=(WIDE,), guarded=True)[0].ok


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
    of_python = (PythonPort(4000, "accumulators", True), PythonPort(4001, "calls from Java", False))
    told = DriverUses(7, (), (), of_python, 8, False)
    process = OwnProcess(7, processes.PYTHON_OF_DRIVER, ("python",), ports)
    token, calls, other = port_findings(process, frozenset(), told)
    assert (token.ok, token.found.endswith("with a token")) == (True, True)
    assert (calls.ok, calls.essential, "WITHOUT a token" in calls.found) == (False, True, True)
    assert (other.ok, other.essential, "opened by the program" in other.found) == (False, False, True)
    (alone,) = port_findings(OwnProcess(7, processes.PYTHON_OF_DRIVER, ("python",), (OWN,)), frozenset())
    assert alone.ok, "a driver without Barograph has the port for accumulators"
    assert [f.ok for f in port_findings(process, frozenset())] == [False] * 3


def test_a_driver_says_itself_that_its_ports_ask_for_a_secret() -> None:
    """Under ``barograph submit`` on a local master nothing of that is on its command line."""
    process = OwnProcess(8, processes.DRIVER, ("java",), (OWN,))
    found = [next(port_findings(process, frozenset(), DriverUses(7, (), (), (), 8, s))).ok for s in (True, False)]
    assert found == [True, False]


@pytest.mark.parametrize("role", [processes.FEED, processes.BROKER, processes.PYTHON_OF_DRIVER])
def test_a_process_without_a_port_is_told(role: str) -> None:
    (found,) = port_findings(OwnProcess(7, role, ("java",), ()), frozenset())
    assert (found.name, found.ok, found.found) == (f"ports of {role} 7", True, "listens on no port")


def test_pythons_of_executors_ask_for_a_token_if_they_are_of_spark() -> None:
    for module, ok in (("pyspark.daemon", True), ("http.server", False)):
        given = OwnProcess(7, processes.PYTHON_OF_EXECUTOR, ("python3", "-m", module), (OWN,))
        assert [f.ok for f in port_findings(given, frozenset())] == [ok]
