"""The keeper of a cluster's processes goes on after any error."""

import errno
import logging
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from barograph.engines.spark.cluster.embedded import EmbeddedCluster
from barograph.engines.spark.cluster.launch import MASTER
from barograph.engines.spark.cluster.node_keeper import NodeKeeper
from barograph.engines.spark.cluster.processes import Process

ENDED = Process(2**22 + 1, 7)  # no process has such a number
NO_DESCRIPTOR = OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class Record:
    """The run's record. What the next looks at its processes raise, by their keepers."""

    groups = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errors: dict[str, list[Exception]] = {"master-keeper": [NO_DESCRIPTOR], "node-keeper": [ValueError("odd")]}

    @property
    def leaders(self) -> dict[str, Process]:
        if errors := self.errors[threading.current_thread().name]:
            raise errors.pop()
        return {MASTER: ENDED, "node-1": ENDED}


def test_after_any_error_what_has_ended_is_started_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    master, node = threading.Event(), threading.Event()
    cluster = SimpleNamespace(
        run=Record(tmp_path), settings=SimpleNamespace(node_names=lambda: ("node-1",)), start_master=master.set,
        start_node=lambda _: node.set(),
    )  # fmt: skip
    with caplog.at_level(logging.WARNING):
        keeper = NodeKeeper(cast(EmbeddedCluster, cluster))
        try:
            assert master.wait(10) and node.wait(10)
        finally:
            keeper.close()
    said = {r.getMessage() for r in caplog.records if "cannot be looked after" in r.getMessage()}
    assert said == {
        f"{MASTER} cannot be looked after: {type(NO_DESCRIPTOR).__name__}: {NO_DESCRIPTOR}; it is tried again",
        "node-1 cannot be looked after: ValueError: odd; it is tried again",
    }
