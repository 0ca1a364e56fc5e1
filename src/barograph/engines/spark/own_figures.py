"""What Spark itself knows of a query's tasks, without the plug-in: their CPU time, and where they ran. Only looks.

A task tells its CPU time when it ends, which in real-time mode is when its epoch ends.
"""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from barograph.engines.latency import Histogram

_NS = 1e-9


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """cpu_s: of all tasks that ended. workers: of each job, which for a query is an epoch, host and executor of its
    tasks, and how many there were on each."""

    cpu_s: float
    workers: tuple[dict[tuple[str, str], int], ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """Of every epoch that was committed: complete times by clock, and rows out by 10 ms since 1970."""

    epochs: int
    latency: dict[str, Histogram]
    output: dict[int, int]


def task_figures(spark: SparkSession, first_job: int) -> TaskFigures:
    """Of the jobs from that one on, as far as Spark remembers, which is a thousand of them."""
    store = spark.sparkContext._jsc.sc().statusStore()
    cpu_ns, workers = 0, []
    for job in _each(store.jobsList(None)):
        if job.jobId() < first_job:
            continue
        here: dict[tuple[str, str], int] = {}
        for stage_id in _each(job.stageIds()):
            stage = store.lastStageAttempt(stage_id)
            cpu_ns += stage.executorCpuTime()
            for task in _each(store.taskList(stage_id, stage.attemptId(), 1000)):
                worker = (str(task.host()), str(task.executorId()))
                here[worker] = here.get(worker, 0) + 1
        workers.append(here)
    return TaskFigures(cpu_ns * _NS, tuple(workers))


def next_job(spark: SparkSession) -> int:
    """The number that the next job will have, or less."""
    store = spark.sparkContext._jsc.sc().statusStore()
    return 1 + max((int(job.jobId()) for job in _each(store.jobsList(None))), default=-1)


def running_tasks(spark: SparkSession) -> int:
    """Tasks that run now."""
    store = spark.sparkContext._jsc.sc().statusStore()
    return sum(int(stage.numActiveTasks()) for stage in _each(store.activeStages()))


def committed(spark: SparkSession, name: str) -> Committed:
    """What ``TimedSink`` has under that name."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    epochs, due, read, output = (
        [int(n) for n in line.split(",") if n]
        for line in jvm.org.apache.spark.barograph.TimedSink.told(name).split("\n")
    )
    return Committed(epochs[0], {"due": _histogram(due), "read": _histogram(read)}, _pairs(output))


def _histogram(told: list[int]) -> Histogram:
    return Histogram(_pairs(told[2:]), float(told[0]), float(told[1]))


def _pairs(told: list[int]) -> dict[int, int]:
    return dict(zip(told[::2], told[1::2], strict=True))


def _each(sequence: Any) -> list[Any]:
    """A Scala sequence as a list."""
    return [sequence.apply(i) for i in range(sequence.size())]
