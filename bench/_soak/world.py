"""The world of a soak: a kept cluster, a small disk for the checkpoint, the driver program under ``barograph keep``."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from barograph.engines.spark.cluster.embedded import EmbeddedCluster, start_cluster
from barograph.engines.spark.cluster.node_keeper import NodeKeeper
from barograph.engines.spark.cluster.processes import identify, kill, marked
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.experiments.verdict import Verdict
from bench._soak.flow import Flow, read

DISK_MB = 192
FLOW_S = 180.0  # limit for anything that is waited for
ROOT = Path(__file__).parents[2]


@dataclass
class World:
    """kept: the process ``barograph keep``. seen: processes that must be gone at the end."""

    folder: Path
    disk: Path
    cluster: EmbeddedCluster
    nodes: NodeKeeper
    kept: subprocess.Popen[bytes]
    seen: set[int]

    def flow(self) -> Flow:
        """What the present driver tells; an empty one while there is none."""
        found = read(self.folder)
        if found is None or identify(found.pid) is None:
            return Flow(0)
        self.seen |= {found.pid, found.controller} - {0}
        return found

    def wait(self, condition: Callable[[Flow], bool], what: str, timeout_s: float = FLOW_S) -> Flow:
        deadline = time.monotonic() + timeout_s
        while not condition(flow := self.flow()):
            if self.kept.poll() is not None:
                raise RuntimeError(f"barograph keep ended with code {self.kept.returncode}: see {self.log}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not happen within {timeout_s:g} s: see {self.log}")
            time.sleep(0.05)
        return flow

    @property
    def log(self) -> Path:
        return self.folder / "driver.log"

    def finish(self) -> Verdict:
        """Let the driver end in order, and judge."""
        (self.folder / "stop").touch()
        code = self.kept.wait(FLOW_S)
        if code:
            raise RuntimeError(f"the driver ended with code {code}: see {self.log}")
        return Verdict(**json.loads((self.folder / "verdict.json").read_text()))


@contextmanager
def open_world(folder: Path, collect: bool) -> Iterator[World]:
    """collect: the driver's heap is collected and measured once a minute."""
    with ExitStack() as ending:
        disk = ending.enter_context(small_disk(folder / "disk"))
        cluster = ending.enter_context(start_cluster(ClusterSettings(3, 0.6, 8)))
        nodes = NodeKeeper(cluster)
        ending.callback(nodes.close)
        settings = {"conf": cluster.session_conf(), "checkpoint": str(disk / "checkpoint"), "collect": collect}
        (folder / "settings.json").write_text(json.dumps(settings))
        kept = start_kept(folder)
        ending.callback(end, kept, folder)
        world = World(folder, disk, cluster, nodes, kept, set())
        world.wait(lambda flow: flow.flowing_since_s is not None and flow.controller_waits, "the first rows")
        cluster.fence()
        yield world


def start_kept(folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "barograph.cli.main", "--log-level", "info", "keep", "--first-wait", "200ms", "--",
             sys.executable, "-m", "bench._soak.driver", str(folder)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        )  # fmt: skip


def end(kept: subprocess.Popen[bytes], folder: Path) -> None:
    """In order, or else by SIGKILL."""
    if kept.poll() is None:
        kept.send_signal(signal.SIGTERM)
        try:
            kept.wait(FLOW_S)
        except subprocess.TimeoutExpired:
            kept.kill()
            kept.wait()
            driver = None if (told := read(folder)) is None else identify(told.pid)
            kill([] if driver is None else [driver])
            raise


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "barograph-soak", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def left_over(run: Run, seen: set[int]) -> list[str]:
    """Processes and control groups that still exist after the end."""
    found = [f"process {p.pid} of the cluster" for p in marked(run.run_id)]
    found += [f"process {pid}" for pid in sorted(seen) if identify(pid) is not None]
    groups = [] if run.groups is None else [run.groups.path]
    return found + [f"group {path}" for path in groups if path.exists()]
