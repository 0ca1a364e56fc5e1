"""What a soak does to its world. Each fault returns how long it took until rows flowed again, and says what it did."""

import random
import signal
import threading
import time
from collections.abc import Callable

from barograph.engines.spark.cluster.launch import MASTER
from barograph.engines.spark.cluster.node_status import executors_of
from barograph.engines.spark.cluster.processes import Process, alive, identify, kill, send
from bench._soak.flow import Flow
from bench._soak.world import World

STOPPED_S = (5.0, 40.0)
FULL_S = 20.0
Told = tuple[float, str]


def executors(world: World) -> list[tuple[str, str, Process]]:
    """(node, executor, process) of executors with instances."""
    busy = world.wait(lambda flow: bool(flow.executors) and flow.flowing_since_s is not None, "instances").executors
    run = world.cluster.run
    found = [(n, e, p) for n in run.settings.node_names() for e, p in executors_of(run, n).items()]
    return sorted(f for f in found if f[1] in busy)


def next_run(before: Flow) -> Callable[[Flow], bool]:
    return lambda flow: flow.run not in ("", before.run) and flow.flowing_since_s is not None


def kill_executor(world: World, chance: random.Random) -> Told:
    node, executor, process = chance.choice(executors(world))
    before, killed_s = world.flow(), time.monotonic()
    kill([process])
    flow = world.wait(next_run(before), "rows after the kill of an executor")
    return (flow.flowing_since_s or 0.0) - killed_s, f"killed executor {executor} on {node}"


def kill_worker(world: World, chance: random.Random) -> Told:
    node, _, _ = chance.choice(executors(world))
    leader, before, killed_s = world.cluster.run.leaders[node], world.flow(), time.monotonic()
    kill([leader])
    flow = world.wait(next_run(before), "rows after the kill of a worker")
    world.wait(lambda _: is_back(world, node, leader), f"the return of {node}")
    return max((flow.flowing_since_s or 0.0), time.monotonic()) - killed_s, f"killed the worker of {node}"


def kill_master(world: World, _: random.Random) -> Told:
    leader, killed_s = world.cluster.run.leaders[MASTER], time.monotonic()
    kill([leader])
    world.wait(lambda flow: is_back(world, MASTER, leader) and flow.last_row_s > killed_s, "the return of the master")
    return time.monotonic() - killed_s, "killed the master"


def is_back(world: World, name: str, before: Process) -> bool:
    leader = world.cluster.run.leaders[name]
    return leader != before and alive(leader)


def kill_controller(world: World, _: random.Random) -> Told:
    before = world.wait(lambda flow: flow.controller_waits, "a cycle of the controller").controller
    process, killed_s = identify(before), time.monotonic()
    kill([] if process is None else [process])
    world.wait(lambda flow: flow.controller != before and flow.controller_waits, "a cycle of the next controller")
    return time.monotonic() - killed_s, "killed the controller"


def kill_driver(world: World, _: random.Random) -> Told:
    before = world.wait(lambda flow: flow.flowing_since_s is not None, "rows")
    process, killed_s = identify(before.pid), time.monotonic()
    kill([] if process is None else [process])
    world.cluster.lift_fence()  # as at the start: starting is not limited
    flow = world.wait(
        lambda flow: flow.pid not in (0, before.pid) and flow.flowing_since_s is not None, "rows of the next driver"
    )
    world.cluster.fence()
    return (flow.flowing_since_s or 0.0) - killed_s, "killed the driver"


def stop_executor(world: World, chance: random.Random) -> Told:
    """Stopped for 5 to 40 s; it is ended meanwhile if it is silent for too long."""
    node, executor, process = chance.choice(executors(world))
    length_s = chance.uniform(*STOPPED_S)
    before, stopped_s = world.flow(), time.monotonic()
    send(process, signal.SIGSTOP)
    going_on = threading.Timer(length_s, send, (process, signal.SIGCONT))
    going_on.start()

    def flows(flow: Flow) -> bool:
        went_on = flow.run == before.run and flow.last_row_s > stopped_s + length_s
        return went_on or next_run(before)(flow)

    flow = world.wait(flows, "rows after the stop of an executor")
    back_s = flow.flowing_since_s if flow.run != before.run else flow.last_row_s
    what = f"stopped executor {executor} on {node} for {length_s:.0f} s"
    took_s = (back_s or 0.0) - stopped_s
    going_on.join()
    return took_s, what + (", which was ended" if not alive(process) else "")


def fill_disk(world: World, _: random.Random) -> Told:
    """No room for the checkpoint for 20 s. The time counts from when there is room again."""
    filler = world.disk / "filler"
    until_s = time.monotonic() + FULL_S
    while time.monotonic() < until_s:
        fill(world)
        time.sleep(0.1)
    filler.unlink()
    freed_s = time.monotonic()
    # Twice: the query may flow, and die of a commit that failed while there was no room.
    world.wait(lambda flow: flow.flowing_since_s is not None and flow.last_row_s > freed_s, "rows after a full disk")
    return world.flow().last_row_s - freed_s, f"filled the checkpoint's disk for {FULL_S:.0f} s"


def fill(world: World) -> None:
    """Take all that is left."""
    with (world.disk / "filler").open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue


FAULTS: dict[str, Callable[[World, random.Random], Told]] = {
    "executor": kill_executor,
    "worker": kill_worker,
    "master": kill_master,
    "controller": kill_controller,
    "driver": kill_driver,
    "stopped": stop_executor,
    "disk": fill_disk,
}
