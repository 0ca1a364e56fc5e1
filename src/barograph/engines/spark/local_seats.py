"""How many seats a program has whose driver is its only executor, where its user leaves the number to Spark.

Spark has a seat for each core; in real-time mode every instance takes one for as long as the query runs.
"""

import os

LOCAL = "local[*]"
LEAST_SEATS = 8
SEATS_PER_CORE = 4


def own_cores() -> int:
    return len(os.sched_getaffinity(0))


def roomy_master(cores: int) -> str:
    """A local master with more seats than cores."""
    return f"local[{max(LEAST_SEATS, SEATS_PER_CORE * cores)}]"


def told(cores: int) -> str:
    """What to say of it, after what it is used for."""
    return f"{roomy_master(cores)}, since every instance takes a seat and {cores} cores would be {cores} seats"
