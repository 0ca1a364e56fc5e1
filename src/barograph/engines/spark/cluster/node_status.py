"""The nodes of a recorded run: state, fences, executors. Works also in a process that did not start the run."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from barograph.engines.spark.cluster.processes import Process, alive, is_stopped, kill, marked
from barograph.engines.spark.cluster.runs import Run
from barograph.model import BadInput

ALIVE, STOPPED, DEAD = "alive", "stopped", "dead"


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One node. state: of its worker process, as ``state_of`` says. pids: the worker process first, then executors and
    their children."""

    name: str
    address: str
    alive: bool
    state: str
    pids: tuple[int, ...]
    fence_cpu: float | None


def status_of(run: Run) -> tuple[NodeStatus, ...]:
    """Every node of the run."""
    found = []
    for name, address in run.settings.addresses().items():
        leader = run.leaders.get(name)
        members = marked(run.run_id, name)
        pids = sorted((p.pid for p in members), key=lambda pid: (leader is None or pid != leader.pid, pid))
        limit = None
        if run.groups is not None and run.groups.node(name).is_dir():
            limit = run.groups.limit(name)
        is_alive = leader in members
        state = state_of(leader) if is_alive else DEAD
        found.append(NodeStatus(name, address, is_alive, state, tuple(pids), limit))
    return tuple(found)


def state_of(leader: Process | None) -> str:
    """Of the process of a master or a worker, in one word."""
    if leader is None or not alive(leader):
        return DEAD
    return STOPPED if is_stopped(leader) else ALIVE


def fence_run(run: Run, nodes: Iterable[str] | None = None) -> None:
    """Limit nodes to their node_cpu. Does nothing without control groups, or for a node without a node_cpu."""
    cpus = run.settings.node_cpus()
    for name in cpus if nodes is None else nodes:
        cores = cpus[name]
        if run.groups is not None and cores is not None:
            run.groups.fence(name, cores)


def lift_run(run: Run, nodes: Iterable[str] | None = None) -> None:
    if run.groups is not None:
        for name in run.settings.node_names() if nodes is None else nodes:
            run.groups.lift(name)


def executors_of(run: Run, node: str, application: str = "") -> dict[str, Process]:
    """Executor id -> its process, of this application, or of every application that has one on the node."""
    found = {}
    for process in marked(run.run_id, node):
        if (executor := option_of(process, "--executor-id")) and (
            not application or option_of(process, "--app-id") == application
        ):
            found[executor] = process
    return found


def option_of(process: Process, name: str) -> str:
    """The value of an option on its command line; empty if there is none, or the process has ended."""
    try:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return words[words.index(name.encode()) + 1].decode() if name.encode() in words else ""


def kill_executor(run: Run, node: str, executor: str | None = None) -> str:
    """SIGKILL an executor: the named one, or the only one on the node. Returns its id."""
    found = executors_of(run, node)
    if executor is None and len(found) == 1:
        (executor,) = found
    if executor is None or executor not in found:
        raise BadInput(f"{node} has no such executor; it has {', '.join(sorted(found)) or 'none'}")
    kill([found[executor]])
    return executor
