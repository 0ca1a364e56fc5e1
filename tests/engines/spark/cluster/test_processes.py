"""Only processes that Barograph started are found and ended."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from barograph.engines.spark.cluster.processes import (
    NODE_MARK,
    RUN_MARK,
    EndWatch,
    Process,
    alive,
    identify,
    kill_marked,
    marked,
    send,
    wait_gone,
)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child, both of node-1 of a run."""
    environment = {**os.environ, RUN_MARK: f"test-{os.getpid()}", NODE_MARK: "node-1"}
    # It prints a line once the child is there.
    program = "import subprocess; p = subprocess.Popen(['sleep', '100']); print(flush=True); p.wait()"
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started
        kill_marked(f"test-{os.getpid()}")


def known(pid: int) -> Process:
    process = identify(pid)
    assert process is not None
    return process


def test_descendants_are_found_by_their_mark(sleeper: subprocess.Popen[bytes]) -> None:
    run_id = f"test-{os.getpid()}"
    assert len(marked(run_id)) == len(marked(run_id, "node-1")) == 2
    assert known(sleeper.pid) in marked(run_id)
    assert marked(run_id, "node-2") == marked(run_id[:-1]) == ()


def test_kill_marked_leaves_no_process(sleeper: subprocess.Popen[bytes]) -> None:
    kill_marked(f"test-{os.getpid()}", "node-1")
    assert marked(f"test-{os.getpid()}") == ()
    assert sleeper.wait() == -signal.SIGKILL


def test_recycled_pid_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    other_life = replace(known(sleeper.pid), start_ticks=1)
    assert not alive(other_life)
    assert not send(other_life, signal.SIGKILL)
    assert wait_gone(other_life, None)
    assert sleeper.poll() is None


def test_zombie_is_not_alive(sleeper: subprocess.Popen[bytes]) -> None:
    process = known(sleeper.pid)
    assert not wait_gone(process, 0)
    assert send(process, signal.SIGKILL)
    assert wait_gone(process, 10)
    assert identify(sleeper.pid) is None  # ended, although it was not waited for yet


WITHOUT_DESCRIPTORS = """
import errno, os, resource, signal, threading, time
from barograph.engines.spark.cluster.processes import alive, identify, send, wait_gone
me = identify(os.getpid())
before = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
for look in (lambda: alive(me), lambda: send(me, signal.SIGKILL)):
    try:
        print(look())
    except OSError as error:
        assert error.errno == errno.EMFILE, error
print(wait_gone(me, 0.3))
threading.Timer(0.3, resource.setrlimit, (resource.RLIMIT_NOFILE, before)).start()
print(wait_gone(me, 1.0), alive(me))
"""


def test_a_process_is_not_taken_for_dead_for_want_of_descriptors() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_DESCRIPTORS], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["False", "False", "True"], "")


def test_an_end_ends_the_wait_at_once_and_so_does_a_call_to_wake() -> None:
    watch = EndWatch()
    with subprocess.Popen(["sleep", "60"]) as process:
        there = identify(process.pid)
        assert there is not None
        assert _waited_s(watch, [there], 0.2) >= 0.2
        threading.Timer(0.2, process.kill).start()
        assert _waited_s(watch, [there], 30.0) < 15.0
        assert _waited_s(watch, [there], 30.0) < 15.0, "it has ended before the wait"
    threading.Timer(0.2, watch.wake).start()
    assert _waited_s(watch, [], 30.0) < 15.0
    assert _waited_s(watch, [], 30.0) < 15.0, "it was woken before the wait"
    watch.close()
    watch.close()
    watch.wake()


def _waited_s(watch: EndWatch, processes: list[Process], timeout_s: float) -> float:
    begun_s = time.monotonic()
    watch.wait(processes, timeout_s)
    return time.monotonic() - begun_s
