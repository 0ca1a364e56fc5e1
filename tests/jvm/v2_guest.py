"""Runs inside the virtual machine, as its first program: makes a node, applies the lists, and reports the results.

Standard library only. Its orders are in /orders.json; its report is one line of JSON on the console behind REPORT.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path("/sys/fs/cgroup")
NODE = ROOT / "barograph/run/node-1"
THROTTLED = 20
PATIENCE_S = 120.0


def make_node() -> None:
    NODE.mkdir(parents=True)
    for group in (ROOT, NODE.parents[1], NODE.parent):
        (group / "cgroup.subtree_control").write_text("+cpu")
    (NODE / "cpu.max").write_text("60000 100000")


def burn() -> None:
    data = bytes(1 << 16)
    while True:
        hashlib.sha256(data).digest()


def worker(threads: int) -> tuple[int, list[int]]:
    """A process in the node's group with threads that use all they get."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        (NODE / "cgroup.procs").write_text("0")
        burning = [threading.Thread(target=burn, daemon=True) for _ in range(threads)]
        for thread in burning:
            thread.start()
        os.write(write, json.dumps([t.native_id for t in burning]).encode() + b"\n")
        while True:
            time.sleep(60)
    os.close(write)
    with os.fdopen(read) as pipe:
        return pid, json.loads(pipe.readline())


def apply(writes: list[list[str]], tids: dict[str, int]) -> None:
    for path, content in writes:
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(tids[content]) if file.name == "cgroup.threads" else content)


def stat(group: str) -> dict[str, int]:
    return {k: int(v) for k, v in (line.split() for line in (Path(group) / "cpu.stat").read_text().splitlines())}


def watch(groups: list[str], other: Path) -> dict[str, Any]:
    """How cpu.stat of each group changes until each was throttled often enough, and the CPU of another thread.

    stalled_s: the longest time between two looks. This program has no limit, so a long one means a busy host.
    """
    before, mine = {g: stat(g) for g in groups}, int(other.read_text().split()[0])
    deadline = time.monotonic() + PATIENCE_S
    looked, stalled = time.monotonic(), 0.0
    while looked < deadline:
        looked, before_that = time.monotonic(), looked
        stalled = max(stalled, looked - before_that)
        now = {g: stat(g) for g in groups}
        if all(now[g]["nr_throttled"] - before[g]["nr_throttled"] >= THROTTLED for g in groups):
            break
        time.sleep(0.05)
    found: dict[str, Any] = {g: {k: now[g][k] - before[g][k] for k in now[g]} for g in groups}
    found["stalled_s"] = stalled
    found["other_usec"] = (int(other.read_text().split()[0]) - mine) // 1000
    return found


def report() -> dict[str, Any]:
    orders = json.loads(Path("/orders.json").read_text())
    make_node()
    pid, native = worker(3)
    tids = dict(zip(("1", "2", "3"), native, strict=True))
    other = Path(f"/proc/{pid}/task/{native[2]}/schedstat")
    found: dict[str, Any] = {"kernel": os.uname().release, "turns": []}
    for turn in orders["turns"]:
        apply(turn["writes"], tids)
        found["turns"].append(watch(turn["groups"], other))
    found["type"] = (NODE / "cgroup.type").read_text().strip()
    found["held"] = [(Path(g) / "cgroup.threads").read_text().split() == [str(t)] for g, t in
                     zip(orders["turns"][-1]["groups"], native, strict=False)]  # fmt: skip
    apply(orders["end"]["writes"], tids)
    for group in orders["end"]["gone"]:
        Path(group).rmdir()
    found["back"] = {str(t) for t in native} <= set((NODE / "cgroup.threads").read_text().split())
    found["left"] = [p.name for p in NODE.iterdir() if p.is_dir()]
    return found


if __name__ == "__main__":
    try:
        line = json.dumps(report())
    except Exception as error:  # noqa: BLE001  # reported to the host, whatever it is
        line = json.dumps({"error": repr(error)})
    sys.stdout.write(f"\nREPORT {line}\n")
    sys.stdout.flush()
    subprocess.run(["/bin/busybox", "poweroff", "-f"], check=False)
