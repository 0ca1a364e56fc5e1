import os

from barograph.engines.spark.cluster.quiet_nodes import QUIET_CORES, await_quiet, cpu_s


class Executors:
    """They use so many cores until they are quiet. Time passes only in waits."""

    def __init__(self, busy_s: float, cores: float = 1.5) -> None:
        self.at_s, self.busy_s, self.cores = 0.0, busy_s, cores

    def now(self) -> float:
        return self.at_s

    def wait(self, s: float) -> None:
        self.at_s += s

    def used_s(self) -> float:
        return min(self.at_s, self.busy_s) * self.cores + self.at_s * QUIET_CORES / 2


def awaited(executors: Executors, timeout_s: float = 30.0) -> bool:
    return await_quiet(executors.used_s, timeout_s, executors.now, executors.wait)


def test_it_waits_until_compilers_rest() -> None:
    executors = Executors(busy_s=7.2)
    assert awaited(executors)
    assert 8.0 <= executors.at_s <= 9.0


def test_quiet_executors_take_a_second() -> None:
    executors = Executors(busy_s=0.0)
    assert awaited(executors)
    assert executors.at_s == 1.0


def test_it_does_not_wait_for_ever() -> None:
    executors = Executors(busy_s=1e9)
    assert not awaited(executors)
    assert 30.0 <= executors.at_s <= 31.0


def test_cpu_of_processes_that_have_ended_is_nothing() -> None:
    assert cpu_s([2**22 + 1]) == 0.0
    assert cpu_s([os.getpid(), 2**22 + 1]) > 0.0
