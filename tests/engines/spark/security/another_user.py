"""Programs of another user of the machine, for tests."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barograph.engines.spark.cluster.java import find_java, spark_jars
from barograph.engines.spark.cluster.processes import marked
from barograph.testing.local_cluster import TESTING_JAR, LocalCluster

ATTACKS = Path(__file__).with_name("attacks.py")
AS_ANOTHER_USER = Path(__file__).parents[3] / "as_another_user.py"
STRANGER = "org.apache.spark.barograph.testing.Stranger"


class Attacker:
    """A program of another user. Words go in as they are known; ``end`` returns what it got."""

    def __init__(self) -> None:
        if os.getuid() != 0:
            pytest.skip("only root can start a program as another user")
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(AS_ANOTHER_USER), str(ATTACKS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
        )

    def give(self, **what: str | int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        said, _ = self._process.communicate(timeout=120)
        found: dict[str, Any] = json.loads(said)
        assert found["uid"] != os.getuid()
        return found

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def attacker() -> Iterator[Attacker]:
    made = Attacker()
    try:
        yield made
    finally:
        made.kill()


def driver_pids(stage: LocalCluster) -> tuple[int, ...]:
    jvm: Any = stage.spark._jvm
    return os.getpid(), int(jvm.java.lang.ProcessHandle.current().pid())


def every_pid(stage: LocalCluster) -> tuple[int, ...]:
    return (*driver_pids(stage), *(process.pid for process in marked(stage.cluster.run.run_id)))


def strangers_program(folder: Path) -> list[str]:
    """A Java program with Spark's jars. The other user must be able to read them, wherever this checkout is."""
    java = find_java().command
    if not readable_by_others(java):
        pytest.skip(f"another user cannot run {java}")
    jars = (TESTING_JAR, *spark_jars())
    if not all(map(readable_by_others, jars[:2])):
        copied = folder / "jars"
        copied.mkdir(mode=0o755)
        jars = tuple(Path(shutil.copy(jar, copied)) for jar in jars)
        for jar in jars:
            jar.chmod(0o644)
    return [str(java), "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp", ":".join(map(str, jars)), STRANGER]


def readable_by_others(file: Path) -> bool:
    return bool(file.stat().st_mode & 0o004) and all(p.stat().st_mode & 0o001 for p in file.resolve().parents)


def refusals(folder: Path, asked: list[str]) -> list[str]:
    """Of a program of another user: why each of these was refused; empty where it was not."""
    if os.getuid() != 0:
        pytest.skip("only root can start a program as another user")
    nobody = pwd.getpwnam("nobody")
    done = subprocess.run(
        strangers_program(folder), input="\n".join(asked) + "\n", capture_output=True, text=True, timeout=240, cwd="/",
        user="nobody", group=nobody.pw_gid, extra_groups=[], env={"PATH": "/usr/bin:/bin"}, check=True,
    )  # fmt: skip
    user, *answers = done.stdout.splitlines()
    assert (user, len(answers)) == ("nobody", len(asked))
    return answers


@contextmanager
def entered(*folders: Path) -> Iterator[None]:
    """Other users can get as far as these folders: what is above them is open, so that they have to protect themselves.
    Folders of tests are closed by pytest else, and nothing in them is tried in earnest."""
    rights = {place: place.stat().st_mode & 0o7777 for folder in folders for place in folder.parents}
    rights = {place: mode for place, mode in rights.items() if mode & 0o011 != 0o011}
    try:
        for place, mode in rights.items():
            place.chmod(mode | 0o011)
        yield
    finally:
        for place, mode in rights.items():
            place.chmod(mode)


def tried_by_another_user(places: Iterable[Path]) -> dict[str, str]:
    """What another user could do with each, but for nothing. A link leads to what is installed; what it names is tried
    itself if it is one of ours."""
    tried = {p for p in places if not p.is_symlink() or str(p).startswith("/proc/")}
    with attacker() as stranger:
        for place in tried:
            stranger.give(path=str(place))
        found = dict(stranger.end()["paths"])
    assert len(found) == len(tried)
    return {place: can for place, can in found.items() if can}
