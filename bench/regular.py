"""The paper's regular load on real Spark: adaptive against the paper's scheme, fixed shares and Spark alone.

WordCount on three nodes; the load rises fivefold and falls, twice, in 4 minutes or BENCH_SECONDS. Five runs one
after the other, about 27 minutes; then the same in the simulator. JSON: ``seconds``, ``load``, ``spark`` and ``sim``:
per policy ``late_rows``, ``mean_ms``, ``p99_ms``, ``max_ms`` of complete times, ``reserved_core_s``, ``used_core_s``,
``nodes_mean``, ``moves``, ``rescales``, ``longest_pause_s``, ``lost``, ``counted_twice``, ``undrained_lines`` (null:
unknown); ``engines``: whether both engines agree, and where not, why. Bars of adaptive: no late row; mean complete time
at most 1.5 times fixed-peak's and at least 28 times below fixed-equal's; CPU reserved at most 0.75 of fixed-peak's.
BENCH_FOLDER keeps every run's JSON and history.
"""

import os
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from bench._columns import bars, columns, show
from bench._figures import finish
from bench._on_sim import agreement, rehearsed, show_agreement

SECONDS = float(os.environ.get("BENCH_SECONDS", "240"))
LOW, HIGH = 240, 1200


def load(seconds: float) -> str:
    """Linear up and down between LOW and HIGH, twice."""
    quarter = seconds / 4
    points = [(0, LOW), (1, HIGH), (2, LOW), (3, HIGH), (4, LOW)]
    return "ramp " + " ".join(f"{k * quarter:g}s={rate}" for k, rate in points)


def main() -> int:
    return compare("The regular load", load(SECONDS))


def compare(title: str, shape: str, judged: bool = True) -> int:
    """All columns on both engines. judged: whether all bars apply, or only exactness."""
    with ExitStack() as ending:
        kept = os.environ.get("BENCH_FOLDER")
        folder = Path(kept or ending.enter_context(tempfile.TemporaryDirectory(prefix="barograph-bench-")))
        folder.mkdir(parents=True, exist_ok=True)
        on_spark = columns(shape, SECONDS, folder)
        on_sim = rehearsed(shape, SECONDS, folder)
    show(f"{title} on Spark, {SECONDS:g} s", on_spark)
    show(f"{title} in the simulator, {SECONDS:g} s", on_sim)
    both = agreement(on_spark, on_sim)
    show_agreement(both)
    result = {
        "seconds": SECONDS,
        "load": shape,
        "spark": {name: asdict(c) for name, c in on_spark.items()},
        "sim": {name: asdict(c) for name, c in on_sim.items()},
        "engines": [asdict(a) for a in both],
    }
    promised = bars(on_spark)
    return finish(result, promised if judged else promised[-1:])
