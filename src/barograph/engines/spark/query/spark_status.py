"""What Spark itself knows of a query's tasks, without the plug-in: their CPU time, and where they ran. Reads only.

Spark knows a task's CPU time when the task ends, which in real-time mode is the end of its epoch.
"""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from barograph.engines.latency import Histogram

_NS = 1e-9


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """cpu_s: of all tasks that ended. workers: for each job (an epoch of the query), tasks by host and executor."""

    cpu_s: float
    workers: tuple[dict[tuple[str, str], int], ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """Of all committed epochs: complete times by clock, and rows out by centisecond since 1970."""

    epochs: int
    latency: dict[str, Histogram]
    output: dict[int, int]


def task_figures(spark: SparkSession, first_job: int) -> TaskFigures:
    """Of ``first_job`` and later jobs, as far as Spark remembers them, which is a thousand jobs."""
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
    """The next job has this number, or a higher one."""
    store = spark.sparkContext._jsc.sc().statusStore()
    return 1 + max((int(job.jobId()) for job in _each(store.jobsList(None))), default=-1)


def running_tasks(spark: SparkSession) -> int:
    """Tasks that run now."""
    store = spark.sparkContext._jsc.sc().statusStore()
    return sum(int(stage.numActiveTasks()) for stage in _each(store.activeStages()))


def committed(spark: SparkSession, name: str) -> Committed:
    """What ``TimedSink`` has recorded under that name."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    epochs, due, read, output = (
        [int(n) for n in line.split(",") if n]
        for line in jvm.org.apache.spark.barograph.source.TimedSink.told(name).split("\n")
    )
    return Committed(epochs[0], {"due": _histogram(due), "read": _histogram(read)}, _pairs(output))


def _histogram(numbers: list[int]) -> Histogram:
    return Histogram(_pairs(numbers[2:]), float(numbers[0]), float(numbers[1]))


def _pairs(numbers: list[int]) -> dict[int, int]:
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


def _each(sequence: Any) -> list[Any]:
    """A Scala sequence as a list."""
    return [sequence.apply(i) for i in range(sequence.size())]
