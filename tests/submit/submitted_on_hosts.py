"""A script under ``barograph submit`` on the driver's host of a cluster on hosts, and what other commands say there."""

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from barograph.testing.hosts.spark_on_hosts import SparkOnHosts

BAROGRAPH = str(Path(sys.prefix) / "bin" / "barograph")


class SubmittedOnHosts:
    """options: of ``barograph submit``. out: its standard output, on the machine."""

    def __init__(
        self, cluster: SparkOnHosts, out: Path, options: Sequence[str], script: Path, arguments: Sequence[str]
    ) -> None:
        self._cluster, self._script = cluster, script
        known = ("--master", cluster.master, "--properties-file", str(cluster.properties()))
        self._program = cluster.program([BAROGRAPH, "submit", *known, *options, str(script), *arguments])
        assert self._program.stdout is not None
        # A console sink writes much: a full pipe would stop the query.
        drain = (self._program.stdout, out.open("w"))
        threading.Thread(target=shutil.copyfileobj, args=drain, daemon=True).start()

    def said(self) -> str:
        return self._cluster.log("driver").read_text()

    def ask(self, *words: str) -> str:
        """The output of another command of Barograph on the same host."""
        asked = self._cluster.program([BAROGRAPH, *words])
        out, _ = asked.communicate(timeout=60)
        return out

    def status(self) -> dict[str, Any]:
        drivers: list[dict[str, Any]] = json.loads(self.ask("status", "--format", "json") or "[]")
        return next((driver for driver in drivers if driver["topologies"]), {})

    def topology(self) -> dict[str, Any]:
        found: list[dict[str, Any]] = self.status().get("topologies", [{}])
        return found[0]

    def decisions(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.ask("decisions", "--all", "--format", "json").splitlines()]

    def applied(self, what: str) -> list[dict[str, Any]]:
        """The decisions with such a change that were carried out."""
        return [d for d in self.decisions() if d.get("outcome") == "applied" and d[what]]

    def unlimited_hosts(self) -> dict[str, Any]:
        """The hosts in use that do not hold instances to their limits as they should, and what they say of it."""
        ways = {n["name"]: (n["enforces"], n["enforces_because"]) for n in self.status()["nodes"] if not n["released"]}
        assert ways
        return {name: way for name, way in ways.items() if way != (["cooperative"], [])}

    def settle(self, condition: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert self._program.poll() is None and time.monotonic() < deadline, self.said()[-6000:]
            time.sleep(2.0)  # each look starts a program

    def lose_a_used_host(self) -> str:
        """One with instances on it. Returns its name."""
        before = self.topology()
        used = next(node for node, instances in before["by_node"].items() if instances)
        lost = next(name for name in self._cluster.workers if self._cluster.hosts.by_name[name].address == used)
        self._cluster.hosts.by_name[lost].lose()
        self.settle(lambda: len(self.topology().get("restarts", ())) > len(before["restarts"]), 120.0)
        return lost

    def go_on(self, epochs: int = 2, timeout_s: float = 120.0) -> None:
        """Until so many further epochs have begun and ended."""
        epoch = self.topology()["epoch"]
        self.settle(lambda: (self.topology().get("epoch") or 0) > epoch + epochs, timeout_s)

    def end(self) -> None:
        self._cluster.driver.run(["pkill", "-TERM", "-f", self._script.name])
        self._program.wait(60)
