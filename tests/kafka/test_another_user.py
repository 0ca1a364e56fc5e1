"""Another user of the machine against an embedded broker: without the login nothing is read, written or joined."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.fetched import needs_kafka

from barograph.kafka import Broker, Login, start_broker

STRANGER = Path(__file__).with_name("stranger.py")
AS_ANOTHER_USER = Path(__file__).parents[1] / "as_another_user.py"
TOPIC = "rows"
QUESTIONS = (
    "make the topic", "write a row", "read rows", "describe the quorum", "vote for another node", "join as a broker",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def jars() -> None:
    needs_kafka()


def answers(broker: Broker, login: Login | None, row: str, stranger: bool = True) -> dict[str, str | None]:
    cluster = re.search(r"cluster\.id=(\S+)", (broker.properties.parent / "data" / "meta.properties").read_text())
    assert cluster
    given = {
        "broker": broker.address, "controllers": broker.controllers, "topic": TOPIC, "cluster": cluster[1], "row": row,
        "login": None if login is None else [login.user, login.password],
    }  # fmt: skip
    command = [sys.executable, "-I", *([str(AS_ANOTHER_USER)] if stranger else []), str(STRANGER)]
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, timeout=120, cwd="/", check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found["uid"] != os.getuid()) is stranger
    answered: dict[str, str | None] = found["answers"]
    assert tuple(answered) == QUESTIONS
    return answered


def login_of_controllers(broker: Broker) -> Login:
    line = next(n for n in broker.properties.read_text().splitlines() if n.startswith("listener.name.controller.plain"))
    found = re.search(r'username="(\w+)" password="(\w+)"', line)
    assert found
    return Login(found[1], found[2])


@pytest.mark.spark
@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a program as another user")
@pytest.mark.slow
def test_another_user_reads_writes_and_joins_nothing_without_the_login() -> None:
    with start_broker() as broker:
        own = login_of_controllers(broker)
        kept: dict[str, str | None] = {}
        deadline = time.monotonic() + 60
        while "the owner's" not in (
            kept.get("read rows") or ""
        ):  # the first request makes the topic, which takes a while
            assert time.monotonic() < deadline, kept
            kept = answers(broker, broker.login, "the owner's", stranger=False)
        assert [q for q, answer in kept.items() if answer is None] == list(QUESTIONS[3:]), "the quorum is for no client"
        for login in (None, Login("barograph", "0" * 48), Login(own.user, broker.login.password)):
            assert answers(broker, login, "planted") == dict.fromkeys(QUESTIONS), f"as {login}"
        assert own.password != broker.login.password
        joined = answers(broker, own, "planted", stranger=False)
        assert [q for q, answer in joined.items() if answer is None] == list(QUESTIONS[:3])
        last = answers(broker, broker.login, "last", stranger=False)["read rows"] or ""
        assert ("the owner's" in last, "planted" in last) == (True, False)


@pytest.mark.spark
@pytest.mark.slow
def test_logins_are_random_and_only_in_files_of_the_owner() -> None:
    before = os.umask(0)
    try:
        with start_broker() as broker, start_broker() as other:
            passwords = {login.password for b in (broker, other) for login in (b.login, login_of_controllers(b))}
            assert len(passwords) == 4
            folder = broker.properties.parent
            open_to_others = [p for p in (folder, *folder.rglob("*")) if p.lstat().st_mode & 0o077]
            assert open_to_others == []
            command = Path(f"/proc/{broker.pid}/cmdline").read_text()
            assert "kafka.Kafka" in command
            assert not any(password in command + broker.log.read_text() for password in passwords)
    finally:
        os.umask(before)
