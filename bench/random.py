"""The paper's random load on real Spark, every 10 s a whole number of producers from 1 to 25: the columns of `regular`.

4 minutes each, or BENCH_SECONDS; five runs one after the other, about 27 minutes. JSON as of `regular`. The only bar is
that every row is counted once.
"""  # noqa: A005  # named like the load; it is only imported as bench.random

from bench.regular import HIGH, compare

PRODUCERS = 25
SHAPE = f"random 1..{PRODUCERS} x{HIGH // PRODUCERS} every 10s seed=7"


def main() -> int:
    return compare("The random load", SHAPE, judged=False)
