"""How many seats executors on this machine have where the user does not say: more than there are cores.

Spark has a seat for each core; in real-time mode every instance takes one for as long as the query runs, and mostly
waits. ``local[*]`` is a program whose driver is its only executor; an embedded cluster has executors of its own.
"""

import math
import os

LOCAL = "local[*]"
LEAST_SEATS = 8
LEAST_EXECUTOR_SEATS = 4
SEATS_PER_CORE = 4


def is_local(master: str) -> bool:
    """Whether the driver is its only executor. ``local-cluster`` starts others."""
    return master == "local" or master.startswith("local[")


def own_cores() -> int:
    return len(os.sched_getaffinity(0))


def roomy_master(cores: int) -> str:
    """A local master with more seats than cores."""
    return f"local[{max(LEAST_SEATS, SEATS_PER_CORE * cores)}]"


def executor_seats(cores: float, executors: int) -> int:
    """Of each executor of an embedded cluster. cores: of all its nodes together. executors: of all of them."""
    return max(LEAST_EXECUTOR_SEATS, math.ceil(SEATS_PER_CORE * cores / executors))


def told(cores: int) -> str:
    """What to say of it, after what it is used for."""
    return f"{roomy_master(cores)}, since every instance takes a seat and {cores} cores would be {cores} seats"
